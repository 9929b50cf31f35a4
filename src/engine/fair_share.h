// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <utility>

/// What users had of the devices of late, and how far that sets their jobs back.
///
/// Priority comes before it, always: it moves jobs only among those of one priority. A user who had
/// no more than an equal part of what all had stands back by nothing; one who had twice, four
/// times, ... that part stands back by one, two, ... steps, up to a bound. Use fades: after each
/// half life it counts half. Since it fades alike for all, who stands where changes only when
/// devices are used.
///
/// Meant to be called so: charge() whenever an attempt ended, and now and then while it runs;
/// standing() for Contender::standing. A place already in the queue gets worse as its owner uses
/// devices: ask again when the job is the next to start, and if its place moved back, put it there
/// and take the next one instead; at most some hundred times in a pass.
namespace gflow::engine {

struct FairShareRules {
  std::chrono::seconds half_life{7 * 86'400};
  std::chrono::seconds step{6 *
                            3600};  ///< for each doubling beyond an equal part; 0: no fair share
  int max_steps = 8;
  std::map<std::uint32_t, int> weights;  ///< by uid; who is not named has kEqualWeight

  friend bool operator==(const FairShareRules&, const FairShareRules&) = default;
};
/// A user of twice this weight may have twice as much.
constexpr int kEqualWeight = 100;

class FairShare {
 public:
  explicit FairShare(FairShareRules rules = {}) : rules_(std::move(rules)) {}

  /// The user's jobs held so many parts of GPUs (Share::kWholeParts is one) for so long, until
  /// `now`, which never goes back.
  void charge(std::uint32_t uid,
              std::int64_t parts,
              std::chrono::seconds held,
              std::chrono::seconds now);

  /// GPU-seconds that count now.
  [[nodiscard]] std::int64_t used(std::uint32_t uid, std::chrono::seconds now) const;
  [[nodiscard]] std::chrono::seconds standing(std::uint32_t uid, std::chrono::seconds now) const;
  [[nodiscard]] std::size_t users() const { return accounts_.size(); }

 private:
  /// What counted at a moment, in fixed point.
  struct Account {
    std::int64_t amount = 0;
    std::int64_t at = 0;  ///< in steps of fading
  };
  [[nodiscard]] std::int64_t moment(std::chrono::seconds now) const;
  [[nodiscard]] static std::int64_t faded(const Account& account, std::int64_t moment);
  [[nodiscard]] std::int64_t weight(std::uint32_t uid) const;

  FairShareRules rules_;
  std::map<std::uint32_t, Account> accounts_;
  Account all_;
};

}  // namespace gflow::engine
