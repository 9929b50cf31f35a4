// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "command/context.h"

namespace gflow::cli {

/// One request for several jobs: all or none.
using Act = std::function<Result<std::vector<JobId>>(const std::vector<JobId>&)>;

/// Does it for all jobs at once and, if that is refused, for each by itself, so that one that
/// cannot keeps none of the others. Errors go to stderr; the exit code is that of the worst, 0 if
/// all went. `say` is what stdout says of each job: "Job 5 put on hold.".
[[nodiscard]] int act_on_each(Context& context,
                              const std::vector<JobId>& jobs,
                              const Act& act,
                              const std::function<std::string(JobId)>& say);

}  // namespace gflow::cli
