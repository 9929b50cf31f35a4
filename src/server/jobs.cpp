// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "api/json.h"
#include "base/text.h"
#include "server/handlers.h"
#include "server/views.h"

namespace gflow::server {
namespace {

// A page ends early rather than grow over this: commands can be long.
constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;
constexpr std::size_t kMaxKeyBytes = 200;
// Nobody reads the reasons of thousands of new jobs, and finding them takes the loop's time.
constexpr std::size_t kMaxReasons = 100;

/// About what the job takes as JSON.
std::size_t size_of(const api::JobView& job) {
  std::size_t bytes = 1000 + job.spec.command.size();
  for (const api::BlockerView& blocker : job.blockers) bytes += 200 + 100 * blocker.holders.size();
  return bytes;
}

api::JobPage page_of(const Exchange& exchange, JobQuery query) {
  const engine::State& state = exchange.service.state();
  api::JobPage page;
  page.revision = state.revision();
  std::size_t bytes = 0;
  const std::size_t most = query.most++;  // one more tells whether there are more
  for (const Job* job : state.list(query)) {
    if (page.jobs.size() == most || bytes > kMaxPageBytes) {
      page.next_after = page.jobs.back().id;
      break;
    }
    page.jobs.push_back(view_for(exchange.caller, exchange.service, *job));
    bytes += size_of(page.jobs.back());
  }
  return page;
}

/// What earlier runs of the same command say about the memory this one asks for.
std::string advice_for(const engine::State& state, const JobSpec& spec) {
  const gflow::Request& request = spec.request;
  if (request.gpus == 0) return {};
  const auto peak = state.peak(spec.user.uid, spec.command);
  if (!peak || (request.gpu_memory > Memory{} && request.gpu_memory >= peak->most)) return {};
  // A tenth more than was ever seen, in whole MiB.
  const Memory enough{(peak->most.bytes + peak->most.bytes / 10 + (1 << 20) - 1) >> 20 << 20};
  const std::string seen = fmt::format("{} earlier run{} of '{}' used up to {} of GPU memory",
                                       peak->runs,
                                       peak->runs == 1 ? "" : "s",
                                       printable(engine::program_of(spec.command)),
                                       memory_text(peak->most));
  if (request.gpu_memory > Memory{}) {
    return fmt::format("{}, and this one asks for {}; --gpu-memory {} would be enough",
                       seen,
                       memory_text(request.gpu_memory),
                       memory_text(enough));
  }
  return fmt::format(
      "{}; with --gpu-memory {} it starts only where that is free", seen, memory_text(enough));
}

api::SubmitAnswer answer_of(const Service& service, const std::vector<JobId>& jobs) {
  api::SubmitAnswer answer;
  for (const JobId id : jobs) {
    api::SubmitAnswer::Item item;
    item.id = id;
    if (const Job* job = service.state().find(id)) {
      item.name = job->spec.name;
      item.status = status_of(*job);
      if (answer.items.size() < kMaxReasons) {
        item.reason = reason_text(service.state().blockers(id, service.now()));
        item.advice = advice_for(service.state(), job->spec);
      }
    }
    answer.items.push_back(std::move(item));
  }
  return answer;
}

Reply submitted(const Service& service, const Result<std::vector<JobId>>& jobs) {
  if (!jobs) return problem(jobs.error());
  Reply reply = json_reply(api::write(answer_of(service, *jobs)));
  reply.status = 201;
  if (!jobs->empty()) {
    reply.headers.emplace_back("Location", fmt::format("/api/v1/jobs/{}", jobs->front().value));
  }
  return reply;
}

Result<void> check_key(const std::string& key) {
  if (key.size() <= kMaxKeyBytes && is_utf8(key)) return {};
  return fail(Code::Usage,
              fmt::format("Idempotency-Key must be UTF-8 of at most {} bytes", kMaxKeyBytes));
}

Result<api::SubmitRequest> read_submission(const Request& request) {
  GF_CHECK(check_key(request.idempotency_key));
  auto submission = GF_TRY(api::read_submit_request(request.body));
  submission.idempotency_key = request.idempotency_key;
  return submission;
}

}  // namespace

void list_jobs(Exchange exchange) {
  const auto query = api::read_query(exchange.request.query);
  if (!query) return exchange.respond(problem(query.error()));
  exchange.respond(json_reply(api::write(page_of(exchange, *query))));
}

void submit_jobs(Exchange exchange) {
  auto submission = read_submission(exchange.request);
  if (!submission) return exchange.respond(problem(submission.error()));
  for (auto& item : submission->items) item.spec.user = exchange.caller.user;
  exchange.service.submit(
      std::move(*submission),
      exchange.caller,
      [&service = exchange.service, respond = std::move(exchange.respond)](
          const Result<std::vector<JobId>>& jobs) { respond(submitted(service, jobs)); });
}

void update_jobs(Exchange exchange) {
  auto update = api::read_update_request(exchange.request.body);
  if (!update) return exchange.respond(problem(update.error()));
  exchange.service.request(
      engine::event::Update{
          std::move(update->jobs), exchange.caller.actor(), std::move(update->changes)},
      changed(std::move(exchange.respond)));
}

}  // namespace gflow::server
