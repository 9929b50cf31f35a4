// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/status_counts.h"
#include "base/result.h"
#include "core/job.h"

namespace gflow::api {

/// Jobs that were submitted as one, as those of an array, and share a limit. A group is its
/// owner's: the same name is another group for another user.
struct GroupView {
  std::string name;
  User user;
  int max_concurrent = 0;  ///< of them run at once; 0: any number
  std::uint64_t jobs = 0;  ///< that are counted
  JobId first_job;         ///< of those
  JobId last_job;
  StatusCounts states;
};
/// The answer to GET /api/v1/groups: by name, then by owner.
struct GroupPage {
  std::vector<GroupView> groups;
  std::string next;  ///< ask again with after= this for more; "" if these were all
};

[[nodiscard]] std::string write(const GroupView& group);
[[nodiscard]] Result<GroupView> read_group(std::string_view json);
[[nodiscard]] std::string write(const GroupPage& page);
[[nodiscard]] Result<GroupPage> read_group_page(std::string_view json);

}  // namespace gflow::api
