// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

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

[[nodiscard]] std::string write(const DefragView& view);
[[nodiscard]] Result<DefragView> read_defrag(std::string_view json);

}  // namespace gflow::api
