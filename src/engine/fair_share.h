// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>

/// What users had of the devices of late and have now, and how far that sets their jobs back.
///
/// Priority comes before it, always: it moves jobs only among those of one priority. Only users
/// compete who have jobs that run or may start; one who competes with nobody never stands back. An
/// equal part is what all who compete have, by their number. Who has twice, four times, ... that
/// part stands back by one, two, ... steps, up to a bound; and while one waits who has little of
/// it, all who have more come after that user. What users had fades: after each half life it
/// counts half. What they hold counts at once, as if they had held it for a half life: each next
/// job of a user stands further back, and the first one of another starts with the next free
/// device. What they give back counts until it is given out anew: else who had a whole machine
/// would have nothing at the moment that decides who has it next.
///
/// Usage: charge() whenever a job ended, hold(), carry() and wait() with every
/// change of what runs and waits, settle() before penalty() is asked and after every start,
/// forget_released() when all that could start did.
namespace gflow::engine {

struct FairShareRules {
  std::chrono::seconds half_life{7 * 86'400};
  std::chrono::seconds step{6 * 3600};  ///< for each doubling of an equal part; 0: no fair share
  int max_steps = 8;
  int little_percent = 50;  ///< of an equal part
  /// How far those stand back who have more while one waits who has little. More than any allowance
  /// of the order, so that they do not pass; but who waited so long does.
  std::chrono::seconds lead{30 * 86'400};

  friend bool operator==(const FairShareRules&, const FairShareRules&) = default;
};

class FairShare {
 public:
  explicit FairShare(FairShareRules rules = {}) : rules_(rules) {}
  void set_rules(FairShareRules rules) { rules_ = rules; }

  /// An ended job of the user had so much of GPUs, a whole one for a second being a second, until
  /// `now`, which never goes back.
  void charge(std::uint32_t uid, std::chrono::milliseconds gpu_time, std::chrono::seconds now);
  /// Active jobs of the user hold so many parts of GPUs (Share::kWholeParts is one) more, or less.
  void hold(std::uint32_t uid, std::int64_t parts);
  [[nodiscard]] std::int64_t held(std::uint32_t uid) const;  ///< by hold()
  void forget_released();
  /// A job of the user that has not ended had so much of GPUs in attempts that did: `times` 1 when
  /// there is one more of them, -1 for one less.
  void carry(std::uint32_t uid, std::chrono::milliseconds gpu_time, int times);
  /// So many more jobs of the user may start, or less.
  void wait(std::uint32_t uid, std::int64_t jobs);

  /// Compares all who compete. True if somebody stands back by less than before.
  bool settle(std::chrono::seconds now);
  /// The same at the same time.
  bool settle_again() { return settle(settled_); }
  /// How far the user's jobs stand back since settle().
  [[nodiscard]] std::chrono::seconds penalty(std::uint32_t uid) const;
  /// The same to look at again and again: it stays where it is as long as jobs of the user may
  /// start. REQUIRES: one may.
  [[nodiscard]] const std::chrono::seconds* penalty_of(std::uint32_t uid) const {
    return &accounts_.at(uid).penalty;
  }

  /// The same of those only who compete, and of these users: for who tells what will be.
  [[nodiscard]] FairShare among(const std::set<std::uint32_t>& uids) const;

  /// GPU-seconds that count now.
  [[nodiscard]] std::int64_t used(std::uint32_t uid, std::chrono::seconds now) const;
  [[nodiscard]] std::size_t users() const { return accounts_.size(); }
  /// What holds and waits, for tests: the same if it was told the same.
  [[nodiscard]] bool holds_like(const FairShare& other) const;

 private:
  struct Account {
    std::int64_t amount = 0;    ///< what counted at a moment, in fixed point
    std::int64_t at = 0;        ///< that moment, in steps of fading
    std::int64_t held = 0;      ///< parts
    std::int64_t released = 0;  ///< parts held until just now
    std::int64_t carried = 0;
    std::int64_t waiting = 0;
    std::chrono::seconds penalty{0};
  };
  [[nodiscard]] std::int64_t moment(std::chrono::seconds now) const;
  [[nodiscard]] static std::int64_t faded(const Account& account, std::int64_t moment);
  [[nodiscard]] std::int64_t load(const Account& account, std::int64_t moment) const;
  struct Comparison {
    std::int64_t part = 0;  ///< 0 where nobody competes
    std::int64_t little = 0;
    bool one_has_little = false;
  };
  [[nodiscard]] Comparison compare(std::int64_t moment) const;
  [[nodiscard]] std::chrono::seconds steps_of(std::int64_t load, std::int64_t part) const;
  [[nodiscard]] static bool competes(const Account& one) { return one.held > 0 || one.waiting > 0; }
  [[nodiscard]] static bool is_idle(const Account& one) {
    return one.held == 0 && one.released == 0 && one.carried == 0 && one.waiting == 0;
  }
  void forget_if_idle(std::uint32_t uid);

  FairShareRules rules_;
  std::map<std::uint32_t, Account> accounts_;
  std::set<std::uint32_t> released_;  ///< who has released any
  std::chrono::seconds settled_{0};
};

}  // namespace gflow::engine
