// SPDX-License-Identifier: Apache-2.0
#include "cli/job/print_jobs.h"

#include <algorithm>
#include <ostream>

#include "cli/selection.h"

namespace gflow::cli {

Result<int> print_jobs(const Invocation& invocation,
                       Context& context,
                       const std::function<Result<std::string>(JobId)>& shown) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  int worst = 0;
  bool first = true;
  for (const JobId id : jobs) {
    const auto text = shown(id);
    if (!text) {
      context.error(text.error());
      worst = std::max(worst, exit_code(text.error().code));
      continue;
    }
    if (!first && !context.json) context.out << '\n';
    first = false;
    context.out << *text;
  }
  return worst;
}

}  // namespace gflow::cli
