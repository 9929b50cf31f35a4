// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "api/types.h"
#include "base/result.h"
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

/// What has to be so for a submission to be taken, where one of its key was not taken before. What
/// either fails with is answered, and there never was a job: nothing is remembered of it.
struct SubmitIf {
  std::function<Result<void>()> before;            ///< asked right before it is decided
  std::function<Result<void>(JobId first)> after;  ///< and right after, before it is committed
};

}  // namespace gflow::server
