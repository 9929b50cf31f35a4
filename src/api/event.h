// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_table.h"
#include "base/result.h"
#include "core/device_change.h"
#include "core/job_event.h"
#include "core/job_sight.h"
#include "core/node_change.h"

namespace gflow::api {

/// The documents of a stream of events, each on one line.
[[nodiscard]] std::string write_job_event(std::uint64_t id, WallTime at, const JobEvent& event);
[[nodiscard]] std::string write_device_event(WallTime at, const DeviceChange& change);
[[nodiscard]] std::string write_node_event(WallTime at, const NodeChange& change);

/// What has no id and is not kept.
inline constexpr std::string_view kDeviceEvent = "device.changed";
inline constexpr std::string_view kNodeEvent = "node.changed";

/// Which events somebody asked for.
struct EventFilter {
  std::vector<JobId> jobs;         ///< ascending; empty: all
  std::vector<std::string> users;  ///< the same
  std::vector<std::string> types;  ///< the same
  JobSight sight;                  ///< of whoever listens: not in the query

  [[nodiscard]] bool takes_all() const {
    return jobs.empty() && users.empty() && types.empty() && sight.others == OthersJobs::All;
  }
  [[nodiscard]] bool takes(const JobEvent& event) const;
  /// Events of a type that are not of jobs.
  [[nodiscard]] bool takes(std::string_view type) const;
};
/// A query of GET /api/v1/events.
struct EventQuery {
  EventFilter filter;
  std::optional<std::uint64_t> after;  ///< the last event that was seen
  bool follow = true;
};
template <>
QueryTable<EventQuery> query_table<EventQuery>();
/// `last_event_id` is that of a header, "" for none; it goes before what the query says. Errors:
/// Usage.
[[nodiscard]] Result<void> begin_behind(EventQuery& query, std::string_view last_event_id);
/// Both. Errors: Usage.
[[nodiscard]] Result<EventQuery> read_event_query(std::string_view query,
                                                  std::string_view last_event_id);

}  // namespace gflow::api
