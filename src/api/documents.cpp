// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"

namespace gflow::api {

void describe_documents(Schemas& schemas) {
  for (const auto describe : {describe_jobs,
                              describe_explanation,
                              describe_queue,
                              describe_defrag,
                              describe_submissions,
                              describe_requests,
                              describe_machine,
                              describe_groups,
                              describe_statistics,
                              describe_placement,
                              describe_snapshot,
                              describe_drains,
                              describe_daemon,
                              describe_account,
                              describe_tokens,
                              describe_gpu_resources,
                              describe_events,
                              describe_problems}) {
    describe(schemas);
  }
}

}  // namespace gflow::api
