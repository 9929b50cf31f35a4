// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "api/types.h"
#include "core/principal.h"
#include "core/task_payload.h"
#include "engine/event.h"

namespace gflow::server {

/// What somebody submits as the engine takes it, and what each of the jobs runs.
struct Submission {
  engine::event::Submit event;
  std::vector<TaskPayload> payloads;
};
/// The specs have their owner already.
[[nodiscard]] Submission submission_of(std::vector<api::SubmitRequest::Item> items,
                                       const Principal& by);

}  // namespace gflow::server
