// SPDX-License-Identifier: Apache-2.0
#include "cli/job_reason.h"

#include "base/translate.h"
#include "command/times.h"
#include "core/blocker.h"

namespace gflow::cli {

std::string reason_of(const api::JobView& job) {
  if (!job.spec.begin) return job.reason;
  const Blocker begin = blocker::BeginTime{*job.spec.begin};
  if (job.reason != blocker_text(begin)) return job.reason;
  return tr_format("{}: {}", tr(blocker_code(begin)), local_text(*job.spec.begin));
}

}  // namespace gflow::cli
