// SPDX-License-Identifier: Apache-2.0
#include "server/found_job.h"

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/job_tag.h"
#include "server/views.h"

namespace gflow::server {

Result<const Job*> find_job(const Exchange& exchange) {
  const auto number = parse_number(exchange.segment);
  const Job* job = number ? exchange.service.state().find(JobId(*number)) : nullptr;
  if (job != nullptr && knows_of(exchange.caller, job->spec.user)) return job;
  return fail(Code::NotFound, tr_format("there is no job {}", exchange.segment.substr(0, 30)));
}

Reply job_reply(const Principal& caller, const Service& service, const Job& job) {
  Reply reply = json_reply_of(view_for(caller, service, job));
  reply.headers.emplace_back("ETag", version_of_job(caller, service, job));
  return reply;
}

}  // namespace gflow::server
