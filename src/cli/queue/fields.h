// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.h"
#include "command/table.h"

namespace gflow::cli {

/// A column of gqueue.
struct Field {
  std::string name = {};                  ///< header, and what -f takes
  std::vector<std::string> aliases = {};  ///< what -f takes too
  std::string help = {};
  std::size_t least_width = 0;
  std::function<Cell(const api::JobView&)> cell = {};
  std::vector<std::string> needs = {"spec"};  ///< what its cell looks at, as in JobQuery::fields
};
[[nodiscard]] const std::vector<Field>& queue_fields();

constexpr std::string_view kDefaultFields = "JOBID,NAME,ST,TIME,NODES,NODELIST(REASON)";

/// The fields of a list, in its order, of those that gqueue always has and `more`. Errors: Usage
/// naming the fields there are.
[[nodiscard]] Result<std::vector<const Field*>> choose_fields(std::string_view list,
                                                              std::span<const Field> more = {});

/// What a daemon has to show of each job for these.
[[nodiscard]] std::vector<std::string> needs_of(const std::vector<const Field*>& fields);

/// Sorted, each once.
[[nodiscard]] std::vector<std::string> each_once(std::vector<std::string> names);

[[nodiscard]] std::vector<Column> columns_of(const std::vector<const Field*>& fields);
[[nodiscard]] Row row_of(const std::vector<const Field*>& fields, const api::JobView& job);

/// NODELIST(REASON): "0,1", "(Resources: Need 4 GPUs, only 1 available)" or "-".
[[nodiscard]] std::string where_or_why(const api::JobView& job);

}  // namespace gflow::cli
