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

/// What statistics are wanted of: jobs that ended in a time, and all that have not ended; of these
/// and of those that ended later what they held in that time.
struct StatisticsWish {
  std::optional<WallTime> since;
  std::optional<WallTime> until;
  api::UsageBy by = api::UsageBy::None;
};

/// Counts jobs it is shown one after the other, and tells at the end what came of that.
class JobStatistics {
 public:
  /// Of one who sees so much: projects they are not shown count as none.
  JobStatistics(const StatisticsWish& wish,
                const engine::State& state,
                Now now,
                const JobSight& sight = {})
      : wish_(wish), state_(state), now_(now), sight_(sight) {}

  /// Of the state it was made for.
  void add(const engine::Glance& job);
  /// All were shown: notes what the state knows of those that are not there any more.
  void counted();
  /// Sorts what was counted; touches nothing else.
  [[nodiscard]] api::StatisticsView finish() &&;

 private:
  struct Usage {
    api::UsageView view;
    std::vector<std::chrono::milliseconds> waits;
    std::vector<std::chrono::milliseconds> run_times;
    std::chrono::milliseconds gpu_time{0};
    std::chrono::milliseconds cpu_time{0};
    std::int64_t gpu_parts = 0;  ///< held now, as gpu_parts_of()

    void add_ended(const engine::State& state, const Job& job, const Ended& ended);
    [[nodiscard]] api::UsageView finish() &&;
  };
  [[nodiscard]] bool is_in_time(WallTime ended) const;
  [[nodiscard]] std::chrono::milliseconds within(WallTime end,
                                                 std::chrono::milliseconds time) const;
  [[nodiscard]] std::chrono::milliseconds gpu_time_within(const Job& job) const;
  /// Which part it belongs to: "" is one, too. None: there are no parts.
  [[nodiscard]] std::optional<std::string> name_of_part(const JobSpec& spec) const;
  [[nodiscard]] Usage* part_of(const JobSpec& spec);

  StatisticsWish wish_;
  const engine::State& state_;
  Now now_;
  JobSight sight_;
  Usage total_;
  std::map<std::string, Usage> parts_;
  std::optional<WallTime> known_since_;
};

}  // namespace gflow::server
