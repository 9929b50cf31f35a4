// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/status_counts.h"
#include "base/result.h"
#include "base/time.h"

namespace gflow::api {

/// What is told besides the total: of whom or what each part is.
enum class UsageBy { None, User, Project };
[[nodiscard]] constexpr std::string_view usage_by_name(UsageBy by) {
  switch (by) {
    case UsageBy::None:
      return "none";
    case UsageBy::User:
      return "user";
    case UsageBy::Project:
      return "project";
  }
  return "";
}
/// In the order of the enumerators.
inline constexpr std::array<std::string_view, 3> kUsageByNames = {
    usage_by_name(UsageBy::None), usage_by_name(UsageBy::User), usage_by_name(UsageBy::Project)};

/// Of so many times: what they were on the average, and how many percent were no longer than what.
/// Optional parts are not known where there were none.
struct TimesView {
  std::uint64_t count = 0;
  std::optional<std::chrono::milliseconds> mean;
  std::optional<std::chrono::milliseconds> median;
  std::optional<std::chrono::milliseconds> p90;
  std::optional<std::chrono::milliseconds> p99;
  std::optional<std::chrono::milliseconds> most;
};
/// Of some jobs: how long they waited and ran, and what they held.
struct UsageView {
  std::string name;     ///< of the user or the project; "" for all, and for those without a project
  StatusCounts states;  ///< of jobs that wait and run now, and of those that ended in the time
  TimesView waits;      ///< of jobs that ended in the time and had started: until their last start
  TimesView run_times;  ///< of the same jobs, their last attempt
  /// GPUs times seconds that jobs held in the time, also those that run and that ended later; a
  /// share counts as its part.
  double gpu_seconds = 0;
  double cpu_seconds = 0;  ///< processor time their last attempts used
  double gpus_held = 0;    ///< now
};
/// The answer to GET /api/v1/statistics.
struct StatisticsView {
  WallTime at;
  std::optional<WallTime> since;  ///< jobs that ended from here on; empty: all that are known
  std::optional<WallTime> until;
  /// Of the jobs that ended later each is counted: when the last one ended of those that gflow has
  /// forgotten; empty: it has forgotten none.
  std::optional<WallTime> known_since;
  std::string others_jobs = "all";  ///< what is counted of others' jobs: of kOthersJobsNames
  UsageView total;
  std::string by;                ///< what `parts` are of: of kUsageByNames
  std::vector<UsageView> parts;  ///< by name
};

[[nodiscard]] std::string write(const StatisticsView& statistics);
[[nodiscard]] Result<StatisticsView> read_statistics(std::string_view json);

}  // namespace gflow::api
