// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_running.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "runner/attempt_list.h"

namespace gflow::daemon {

Result<void> check_running(std::span<const Job> jobs, const os::Paths& paths) {
  std::vector<std::uint64_t> unknown;
  for (const auto& [id, number] : GF_TRY(runner::list_supervised(paths.attempts_dir()))) {
    const auto job = std::ranges::lower_bound(jobs, id, {}, &Job::id);
    const bool known =
        job != jobs.end() && job->id == id && is_active(*job) && attempt_of(*job)->number == number;
    if (!known) unknown.push_back(id.value);
  }
  if (unknown.empty()) return {};
  return fail(Code::Damaged,
              tr_count(unknown.size(),
                       "job {} is running, but is not in the database '{}': it is not the one "
                       "gflowd used before. Restore that one, or run 'gflow doctor --recover' to "
                       "rebuild it from the last backup and the running jobs",
                       "jobs {} are running, but are not in the database '{}': it is not the one "
                       "gflowd used before. Restore that one, or run 'gflow doctor --recover' to "
                       "rebuild it from the last backup and the running jobs",
                       fmt::join(unknown, ", "),
                       printable(paths.database())));
}

}  // namespace gflow::daemon
