// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "server/handlers.h"
#include "server/submission.h"
#include "server/views.h"

namespace gflow::server {
namespace {

// Nobody reads the reasons of thousands of new jobs, and finding them takes the loop's time.
constexpr std::size_t kMaxReasons = 100;
constexpr std::size_t kFewItems = 8;

/// What earlier runs of the same command say about the memory this one asks for.
std::string advice_for(const engine::State& state, const JobSpec& spec) {
  const gflow::Request& request = spec.request;
  if (request.gpus == 0) return {};
  const auto peak = state.peak(spec.user.uid, spec.command);
  if (!peak || (request.gpu_memory > Memory{} && request.gpu_memory >= peak->most)) return {};
  // A tenth more than was ever seen, in whole MiB.
  const Memory enough{(peak->most.bytes + peak->most.bytes / 10 + (1 << 20) - 1) >> 20 << 20};
  const std::string seen = tr_count(static_cast<std::uint64_t>(peak->runs),
                                    "{} earlier run of '{}' used up to {} of GPU memory",
                                    "{} earlier runs of '{}' used up to {} of GPU memory",
                                    peak->runs,
                                    printable(engine::program_of(spec.command)),
                                    memory_text(peak->most));
  if (request.gpu_memory > Memory{}) {
    return tr_format("{}, and this one asks for {}; --gpu-memory {} would be enough",
                     seen,
                     memory_text(request.gpu_memory),
                     memory_text(enough));
  }
  return tr_format(
      "{}; with --gpu-memory {} it starts only where that is free", seen, memory_text(enough));
}

/// An item of a submission: for how many jobs it stands, and what it calls them.
struct Submitted {
  std::uint64_t count = 1;
  std::string name;
};

/// Of a job that was forgotten since it was submitted under this key before there is what the
/// submission itself says.
api::SubmitAnswer answer_of(const Principal& caller,
                            const Service& service,
                            const std::vector<JobId>& jobs,
                            const std::vector<Submitted>& items) {
  api::SubmitAnswer answer;
  std::size_t next = 0;
  for (const auto& [count, name] : items) {
    const JobId id = jobs.at(next);
    next += count;
    api::SubmitAnswer::Item item;
    item.id = id;
    item.count = count;
    item.name = name;
    if (const Job* job = service.state().find(id)) {
      item.name = job->spec.name;
      item.status = status_of(*job);
      if (answer.items.size() < kMaxReasons) {
        item.reason = is_ended(*job) ? view_for(caller, service, *job).reason
                                     : reason_text(blockers_for(caller, service, *job));
        item.advice = advice_for(service.state(), job->spec);
      }
    }
    answer.items.push_back(std::move(item));
  }
  return answer;
}

Reply submitted(const Principal& caller,
                const Service& service,
                const Result<std::vector<JobId>>& jobs,
                const std::vector<Submitted>& items) {
  if (!jobs) return problem(jobs.error());
  Reply reply = json_reply_of(answer_of(caller, service, *jobs, items));
  reply.is_short = items.size() <= kFewItems;
  reply.status = 201;
  if (!jobs->empty() && service.state().find(jobs->front()) != nullptr) {
    reply.headers.emplace_back("Location", fmt::format("/api/v1/jobs/{}", jobs->front().value));
  }
  return reply;
}

api::Asked<api::SubmitRequest> read_submission(std::string_view body) {
  auto submission = api::read_submit_request(body);
  if (submission) submission->digest = digest_of(body);
  return submission;
}

/// An allocation runs what gflowd gives it, which is not on the wire.
api::Asked<void> check_no_allocation(const api::SubmitRequest& submission) {
  for (std::size_t i = 0; i < submission.items.size(); ++i) {
    if (!submission.items[i].spec.allocation) continue;
    return api::refuse(
        fmt::format("/items/{}/spec/allocation", i),
        tr("a submitted job cannot be an allocation: use POST /api/v1/gpu/allocate or 'galloc'"));
  }
  return {};
}

/// What connects as root may pass on what others ask, and what it runs is root's, if it runs here.
Result<void> check_not_root_over_tcp(const Service& service, const Principal& caller) {
  if (caller.known_by == KnownBy::Peer || caller.uid != 0U || !service.decides()) return {};
  return fail(Code::Permission,
              tr("root cannot submit jobs over TCP: use the socket, as gbatch does"));
}

void submit(Exchange exchange, api::SubmitRequest submission) {
  if (auto may = check_not_root_over_tcp(exchange.service, exchange.caller); !may) {
    return exchange.respond(problem(may.error()));
  }
  if (auto checked = check_no_allocation(submission); !checked) {
    return exchange.respond(problem(checked.error()));
  }
  submission.idempotency_key = exchange.request.idempotency_key;
  const auto owner = job_owner(exchange.caller);
  if (!owner) return exchange.respond(problem(owner.error()));
  std::vector<Submitted> items;
  for (auto& item : submission.items) {
    item.spec.user = *owner;
    items.push_back({item.count(), item.spec.name});
  }
  exchange.service.submit(std::move(submission),
                          exchange.caller,
                          [&service = exchange.service,
                           caller = exchange.caller,
                           respond = std::move(exchange.respond),
                           items = std::move(items)](const Result<std::vector<JobId>>& jobs) {
                            respond(submitted(caller, service, jobs, items));
                          });
}

/// As submit(), up to where the jobs would be there. Nothing is run by it: which way somebody came
/// who asks does not matter.
void check(Exchange exchange, api::SubmitRequest submission) {
  if (auto checked = check_no_allocation(submission); !checked) {
    return exchange.respond(problem(checked.error()));
  }
  const auto owner = job_owner(exchange.caller);
  if (!owner) return exchange.respond(problem(owner.error()));
  for (auto& item : submission.items) item.spec.user = *owner;
  const Submission asked = submission_of(std::move(submission.items), exchange.caller);
  const auto checked = exchange.service.state().check(asked.event);
  exchange.respond(checked ? json_reply(api::write_job_ids({})) : problem(checked.error()));
}

}  // namespace

void submit_jobs(Exchange exchange) {
  read_body<api::SubmitRequest>(std::move(exchange), read_submission, submit);
}

void check_jobs(Exchange exchange) {
  read_body<api::SubmitRequest>(std::move(exchange), api::read_submit_request, check);
}

}  // namespace gflow::server
