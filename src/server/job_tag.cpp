// SPDX-License-Identifier: Apache-2.0
#include "server/job_tag.h"

#include <memory>
#include <utility>
#include <variant>

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
  std::string text = api::write(lasting);
  // Who has to let it go on: its status is the same whoever suspended it.
  if (const auto* running = std::get_if<Running>(&job.state)) text += running->suspended_by;
  return '"' + digest_of(text) + '"';
}

namespace {

/// A request with If-Match, until it is decided.
struct Matched {
  Service& service;
  Principal caller;
  std::string wanted;
  std::vector<JobId> jobs;
  bool is_other = false;  ///< one of the jobs is not as it says

  Result<void> check() {
    for (const JobId id : jobs) {
      const Job* job = service.state().find(id);
      // Said by whoever changes it.
      if (job == nullptr || !knows_of(caller, job->spec.user)) continue;
      if (names_version(wanted, version_of_job(caller, service, *job))) continue;
      is_other = true;
      return fail(Code::WrongState,
                  tr_format("job {} is not as If-Match says; read it again", id.value));
    }
    return {};
  }
};

}  // namespace

void request_if_match(const Exchange& exchange,
                      std::vector<JobId> jobs,
                      engine::Event event,
                      Service::Answer answer) {
  constexpr int kPreconditionFailed = 412;
  const std::string& wanted = exchange.request.if_match;
  if (wanted.empty()) return exchange.service.request(std::move(event), std::move(answer));
  const auto matched = std::make_shared<Matched>(
      Matched{exchange.service, exchange.caller, wanted, std::move(jobs)});
  exchange.service.request(
      std::move(event),
      [matched, answer = std::move(answer), respond = exchange.respond](
          Result<std::vector<JobId>> done) {
        if (matched->is_other) return respond(problem(done.error(), kPreconditionFailed));
        answer(std::move(done));
      },
      [matched] { return matched->check(); });
}

}  // namespace gflow::server
