// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/statistics.h"
#include "core/job_sight.h"
#include "engine/glance.h"
#include "engine/state.h"

namespace gflow::server {

/// What statistics are wanted of: jobs that ended in a time, and all that have not ended.
struct StatisticsWish {
  enum class By { None, User, Project };
  std::optional<WallTime> since;
  std::optional<WallTime> until;
  By by = By::None;
};

/// Counts jobs it is shown one after the other, and tells at the end what came of that.
class JobStatistics {
 public:
  /// Of one who sees so much: projects they are not shown count as none.
  JobStatistics(const StatisticsWish& wish, const engine::State& state, const JobSight& sight = {})
      : wish_(wish), state_(state), sight_(sight) {}

  /// Of the state it was made for.
  void add(const engine::Glance& job);
  /// All were shown: notes what the state knows of those that are not there any more.
  void counted();
  /// Sorts what was counted; touches nothing else.
  [[nodiscard]] api::StatisticsView finish(WallTime now) &&;

 private:
  struct Usage {
    api::UsageView view;
    std::vector<std::chrono::milliseconds> waits;
    std::vector<std::chrono::milliseconds> run_times;

    void add_active(const JobSpec& spec);
    void add_ended(const engine::State& state, const Job& job, const Ended& ended);
    [[nodiscard]] api::UsageView finish() &&;
  };
  [[nodiscard]] bool is_in_time(WallTime ended) const;
  [[nodiscard]] Usage* part_of(const JobSpec& spec);

  StatisticsWish wish_;
  const engine::State& state_;
  JobSight sight_;
  Usage total_;
  std::map<std::string, Usage> parts_;
  std::optional<WallTime> known_since_;
};

}  // namespace gflow::server
