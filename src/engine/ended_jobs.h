// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/job.h"

/// Inside of the engine: which ended job is forgotten next. Not for other modules.
namespace gflow::engine {

/// Ended jobs by age, which is the time gflow had seen pass when they ended: a clock that was set
/// makes no job old. Those others wait for are pinned: they are kept, and count for nothing. Each
/// operation costs the logarithm of all.
class EndedJobs {
 public:
  using Age = std::pair<std::chrono::milliseconds, JobId>;
  /// Whoever fills the list with new jobs loses his own: no job is so new that nobody has seen it.
  static constexpr std::chrono::hours kLeastKept{1};

  /// REQUIRES: the job has ended and is not here.
  void add(const Job& job, bool pinned);
  /// REQUIRES: the job is here as it was added.
  void remove(const Job& job);
  /// Others wait for the job now, or no longer do. REQUIRES: it is here.
  void set_pinned(const Job& job, bool pinned);

  /// All of them, oldest first.
  [[nodiscard]] const std::set<Age>& by_age() const { return all_; }

  struct Limits {
    std::chrono::milliseconds keep{0};
    std::size_t jobs = 0;
    std::int64_t user_bytes = 0;  ///< what the descriptions of one user's jobs take
  };
  /// Who is to be forgotten now, at this time seen pass: what is older than `keep`; beyond so many
  /// jobs, of the user with most the oldest that never ran, else the oldest. Those younger than
  /// kLeastKept go only beyond twice that number, or so many bytes of their user, and none in the
  /// step that ended it.
  [[nodiscard]] std::optional<JobId> next(std::chrono::milliseconds lived,
                                          const Limits& limits) const;

  friend bool operator==(const EndedJobs&, const EndedJobs&) = default;

 private:
  /// Of one user, those that are not pinned.
  struct User {
    std::set<Age> never_ran;
    std::set<Age> ran;
    std::int64_t bytes = 0;

    [[nodiscard]] std::size_t count() const { return never_ran.size() + ran.size(); }
    [[nodiscard]] const Age& first() const;  ///< to be forgotten. REQUIRES: there is one
    friend bool operator==(const User&, const User&) = default;
  };
  void count(const Job& job);
  void discount(const Job& job);
  void rank(std::uint32_t uid, const User& user);
  void unrank(std::uint32_t uid, const User& user);

  std::set<Age> all_;
  std::set<JobId> pinned_;
  std::set<Age> free_;  ///< not pinned
  std::map<std::uint32_t, User> users_;
  std::set<std::pair<std::size_t, std::uint32_t>> by_count_;   ///< users, who has fewest first
  std::set<std::pair<std::int64_t, std::uint32_t>> by_bytes_;  ///< the same
};

}  // namespace gflow::engine
