// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/refusal.h"
#include "base/result.h"
#include "core/defrag_plan.h"

namespace gflow::api {

/// The answer to GET /api/v1/defrag: the first jobs that may start as soon as there is room, and
/// which moves of running jobs would start them.
struct DefragView {
  std::vector<DefragPlan> jobs;

  friend bool operator==(const DefragView&, const DefragView&) = default;
};

/// Jobs that are looked at for one answer.
constexpr std::size_t kMaxDefrag = 100;
constexpr std::size_t kUsualDefrag = 20;

/// The body of POST /api/v1/defrag: a plan that is to be carried out, as it was told.
struct DefragRequest {
  JobId job;                 ///< who waits
  std::vector<JobId> moves;  ///< who moves

  friend bool operator==(const DefragRequest&, const DefragRequest&) = default;
};

[[nodiscard]] std::string write(const DefragRequest& request);
[[nodiscard]] Asked<DefragRequest> read_defrag_request(std::string_view json);
[[nodiscard]] std::string write(const DefragView& view);
[[nodiscard]] Result<DefragView> read_defrag(std::string_view json);

}  // namespace gflow::api
