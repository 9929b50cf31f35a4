// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/job.h"
#include "engine/gang.h"
#include "engine/line.h"

/// Inside of the engine: jobs that start together or not at all. Not for other modules.
namespace gflow::engine {

/// Jobs of one user of which a number has to run for any to be of use.
struct Gang {
  std::size_t least = 1;            ///< so many have to be active
  std::size_t active = 0;           ///< and not told to stop
  std::set<QueueKey> waiting;       ///< those in the queue
  std::set<JobId> members;          ///< all, whatever their state
  std::optional<std::size_t> room;  ///< GangView::room
  bool is_held = false;             ///< none of them starts
  Nearness near{};
  /// A domain of a level, by its first node.
  struct Tried {
    std::size_t level = 0;
    std::string node;

    friend auto operator<=>(const Tried&, const Tried&) = default;
  };
  std::optional<Tried> tried{};  ///< where they start since they did last; none: anywhere
  std::set<Tried> avoided{};     ///< not tried again: Gathering
  /// Those that were avoided when the last of all was tried: no place is kept there.
  std::set<Tried> refused{};
  /// Where its place is kept that has to be in one domain.
  struct Kept {
    Tried domain;
    std::int64_t missing = 0;  ///< parts of GPUs that had to be given back there, at the fewest
    std::uint64_t round = 0;   ///< Index::rounds when it was kept last
  };
  std::optional<Kept> kept{};

  /// Where some run, what is missing and does not wait has ended or is made anew: those that are
  /// there go on as they are, and nobody waits for members that may never come.
  [[nodiscard]] GangStart start() const {
    if (is_held) return GangStart::NotYet;
    if (active >= least) return GangStart::Alone;
    if (active + waiting.size() >= least) return GangStart::Together;
    return active == 0 ? GangStart::NotYet : GangStart::Alone;
  }
  /// How many more have to be active. REQUIRES: it does not start alone.
  [[nodiscard]] std::size_t needed() const { return least - active; }

  friend bool operator==(const Gang& a, const Gang& b) {
    return a.least == b.least && a.active == b.active && a.waiting == b.waiting &&
           a.members == b.members && a.is_held == b.is_held && a.near == b.near;
  }
};

/// Which job is in which gang, and how these stand.
class Gangs {
 public:
  /// Makes a gang, or changes how many of it have to be active, or where. False if that is what it
  /// was.
  bool put(GangNumber number, std::size_t least, Nearness near) {
    Gang& gang = gangs_[number];
    if (gang.least == least && gang.near == near) return false;
    gang.least = least;
    gang.near = std::move(near);
    gang.avoided.clear();
    gang.refused.clear();
    gang.kept.reset();
    return true;
  }
  /// REQUIRES: it is in no other gang, and there is one of this number.
  void join(JobId job, GangNumber number) {
    gang_of_.insert_or_assign(job, number);
    gangs_.at(number).members.insert(job);
  }
  /// The last one takes the gang with it.
  void leave(JobId job) {
    const auto at = gang_of_.find(job);
    if (at == gang_of_.end()) return;
    const auto gang = gangs_.find(at->second);
    gang->second.members.erase(job);
    if (gang->second.members.empty()) gangs_.erase(gang);
    gang_of_.erase(at);
  }

  /// kNoGang of a job that is in none.
  [[nodiscard]] GangNumber of(JobId job) const {
    const auto at = gang_of_.find(job);
    return at == gang_of_.end() ? kNoGang : at->second;
  }
  /// Whether one of so many jobs with consecutive ids is in a gang.
  [[nodiscard]] bool has_any(JobId first, std::uint64_t count) const {
    const auto at = gang_of_.lower_bound(first);
    return at != gang_of_.end() && at->first.value < first.value + count;
  }
  [[nodiscard]] Gang& at(GangNumber number) { return gangs_.at(number); }
  [[nodiscard]] const Gang& at(GangNumber number) const { return gangs_.at(number); }
  /// Null of one that is not there.
  [[nodiscard]] Gang* get(GangNumber number) {
    const auto gang = gangs_.find(number);
    return gang == gangs_.end() ? nullptr : &gang->second;
  }
  /// Null of a job that is in none.
  [[nodiscard]] Gang* find(JobId job) {
    const GangNumber number = of(job);
    return number == kNoGang ? nullptr : &gangs_.at(number);
  }
  [[nodiscard]] const Gang* find(JobId job) const {
    const GangNumber number = of(job);
    return number == kNoGang ? nullptr : &gangs_.at(number);
  }
  [[nodiscard]] GangStart start(GangNumber number) const {
    return number == kNoGang ? GangStart::Alone : at(number).start();
  }

  /// The same gangs, with nobody active or in the queue.
  [[nodiscard]] Gangs emptied() const {
    Gangs fresh = *this;
    for (auto& [number, gang] : fresh.gangs_) {
      gang.active = 0;
      gang.waiting.clear();
    }
    return fresh;
  }
  friend bool operator==(const Gangs&, const Gangs&) = default;

 private:
  std::map<GangNumber, Gang> gangs_;
  std::map<JobId, GangNumber> gang_of_;
};

}  // namespace gflow::engine
