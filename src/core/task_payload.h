// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/job_range.h"

namespace gflow {

/// What one job of a submission runs: what it has in common with others of it, and what is its own.
struct TaskPayload {
  /// Owners: the jobs of one submission. Null: `own` is all.
  std::shared_ptr<const Payload> shared{};
  /// Where something is shared, arguments are in place of those there if there are any, variables
  /// are set over those there, and nothing else counts.
  Payload own{};
  /// It is that of all these tasks of an array, each of which has its number over it as
  /// task_payload() says; then `shared` is all there is.
  std::optional<TaskRange> tasks{};

  [[nodiscard]] std::uint64_t count() const { return tasks ? tasks->count : 1; }
};

/// What the task of this number of an array has of its own.
[[nodiscard]] Payload task_payload(std::uint64_t number);
/// `shared` may be null.
[[nodiscard]] Payload complete(const Payload* shared, Payload own);
/// What each job of the payloads of one submission counts for: its own bytes, and its part of what
/// it shares with others, so that all of them count for what is stored of them.
[[nodiscard]] std::vector<std::int64_t> bytes_of_each(std::span<const TaskPayload> payloads);

}  // namespace gflow
