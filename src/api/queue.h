// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/expected_start.h"
#include "base/result.h"
#include "core/job_id.h"

namespace gflow::api {

/// A job that may start as soon as there is room, or will, and when it should.
struct QueuedJob {
  JobId id;
  std::optional<ExpectedStart> expected_start;

  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// The answer to GET /api/v1/queue: those that may start as soon as there is room, in the order
/// in which they are considered, then the others.
struct QueueView {
  std::vector<QueuedJob> jobs;

  friend bool operator==(const QueueView&, const QueueView&) = default;
};

/// Jobs whose starts are estimated in one answer.
constexpr std::size_t kMaxForecast = 1000;
/// As many as people look at: a millisecond of the daemon, and 14 where 10,000 jobs differ.
constexpr std::size_t kUsualForecast = 250;

[[nodiscard]] std::string write(const QueueView& queue);
[[nodiscard]] Result<QueueView> read_queue(std::string_view json);

}  // namespace gflow::api
