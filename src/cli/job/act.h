// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "command/command.h"
#include "command/context.h"
#include "core/status.h"

namespace gflow::cli {

/// The jobs that a subcommand of gjob changes.
[[nodiscard]] Positional jobs_to_act_on();

/// Which of these jobs are in one of these states now; none where the daemon does not answer.
[[nodiscard]] std::set<JobId> those_in(Context& context,
                                       const std::vector<JobId>& jobs,
                                       StatusSet statuses);

/// Which jobs come first where they are too many for one request: those that are to start first,
/// or those that end with the ones they depend on.
enum class Start { AtOldest, AtNewest };

/// One request for several jobs: all or none.
struct Act {
  std::function<Result<std::vector<JobId>>(const std::vector<JobId>&)> request;
  Start start = Start::AtOldest;
  /// Where states have changed meanwhile: on which of these it still is to be done. The others are
  /// left out without a word.
  std::function<Result<std::vector<JobId>>(const std::vector<JobId>&)> left = {};
};

/// Does it for many jobs at once and, if that is refused, for ever fewer of them, so that one that
/// cannot keeps none of the others. Errors go to stderr; the exit code is that of the worst, 0 if
/// all went. `say` is what stdout says of each job: "Job 5 put on hold."; `say_otherwise` of those
/// that were like that already, where the daemon tells them apart.
[[nodiscard]] int act_on_each(Context& context,
                              const std::vector<JobId>& jobs,
                              const Act& act,
                              const std::function<std::string(JobId)>& say,
                              const std::function<std::string(JobId)>& say_otherwise = {});

}  // namespace gflow::cli
