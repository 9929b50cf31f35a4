// SPDX-License-Identifier: Apache-2.0
#include "server/job_tag.h"

#include "api/json.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "server/entity_tag.h"
#include "server/views.h"

namespace gflow::server {

std::string version_of_job(const Principal& caller, const Service& service, const Job& job) {
  const api::JobView seen = view_for(caller, service, job);
  api::JobView lasting;
  lasting.id = seen.id;
  lasting.spec = seen.spec;
  lasting.status = seen.status;
  lasting.started = seen.started;
  lasting.ended = seen.ended;
  lasting.node_list = seen.node_list;
  lasting.attempt = seen.attempt;
  lasting.retries = seen.retries;
  return '"' + digest_of(api::write(lasting)) + '"';
}

Result<void> check_if_match(const Exchange& exchange, std::span<const JobId> jobs) {
  const std::string& wanted = exchange.request.if_match;
  if (wanted.empty()) return {};
  for (const JobId id : jobs) {
    const Job* job = exchange.service.state().find(id);
    if (job == nullptr) continue;  // said by whoever changes it
    const std::string version = version_of_job(exchange.caller, exchange.service, *job);
    if (names_version(wanted, version)) continue;
    return fail(Code::WrongState,
                tr_format("job {} is not as If-Match says; read it again", id.value));
  }
  return {};
}

Reply precondition_failed(const Error& error) {
  constexpr int kPreconditionFailed = 412;
  return problem(error, kPreconditionFailed);
}

}  // namespace gflow::server
