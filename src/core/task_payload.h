// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "core/job.h"

namespace gflow {

/// What one job of a submission runs: what it has in common with others of it, and what is its own.
struct TaskPayload {
  /// Owners: the jobs of one submission. Null: `own` is all.
  std::shared_ptr<const Payload> shared{};
  /// Where something is shared, arguments are in place of those there if there are any, variables
  /// are set over those there, and nothing else counts.
  Payload own{};
};

/// `shared` may be null.
[[nodiscard]] Payload complete(const Payload* shared, Payload own);
/// bytes_of() the complete one, or a little more; as if nothing were shared.
[[nodiscard]] std::size_t bytes_of(const TaskPayload& payload);

}  // namespace gflow
