// SPDX-License-Identifier: Apache-2.0
// Allocations that are given back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "api/gpu_resources.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/stop.h"
#include "server/found_allocation.h"
#include "server/handlers.h"
#include "server/job_tag.h"
#include "server/views.h"

namespace gflow::server {
namespace {

/// None: it is on another node. It may hold CPUs alone.
std::optional<int> gpus_on(const Job& job, std::string_view node) {
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || attempt->allocation.node != node) return std::nullopt;
  return static_cast<int>(attempt->allocation.gpus.size());
}

/// What to give back of a node: all of it, or the newest allocation of so many GPUs. Errors:
/// NotFound saying what there is.
Result<std::vector<const Job*>> to_clean_up(const Exchange& exchange,
                                            std::optional<std::uint64_t> count) {
  std::vector<const Job*> there =
      exchange.service.state().list({.statuses = kActive, .users = {exchange.caller.name}});
  std::erase_if(there, [&exchange](const Job* job) {
    return !job->spec.allocation || stop_of(*job) != nullptr || !gpus_on(*job, exchange.segment);
  });
  std::ranges::reverse(there);  // the newest first
  if (there.empty()) {
    return fail(Code::NotFound,
                tr_format("you have no allocation on node '{}'", printable(exchange.segment)));
  }
  if (!count) return there;
  std::set<int> sizes;
  for (const Job* job : there) {
    const int gpus = *gpus_on(*job, exchange.segment);
    if (std::cmp_equal(gpus, *count)) return std::vector<const Job*>{job};
    sizes.insert(gpus);
  }
  return fail(Code::NotFound,
              tr_format("you have no allocation of {} GPUs on node '{}', but of {}",
                        *count,
                        printable(exchange.segment),
                        fmt::join(sizes, ", ")));
}

/// Allocations that were told to end.
struct GivenBack {
  Exchange exchange;
  std::vector<JobId> jobs;
  Reply reply;
  MonoTime until;
  bool is_chosen = true;  ///< nobody else gave them back before this was decided
};

/// Whoever gave GPUs back is answered once they are free, so that what is asked for next finds
/// them: 202 if their processes have not ended by then.
void answer_once_free(const std::shared_ptr<GivenBack>& back) {
  const Service& service = back->exchange.service;
  const auto held = std::ranges::find_if(back->jobs, [&service](JobId id) {
    const Job* job = service.state().find(id);
    return job != nullptr && is_active(*job);
  });
  const auto left = back->until - service.now().mono;
  const bool is_free = held == back->jobs.end();
  if (!is_free && left > left.zero()) {
    auto wait = back->exchange.service.on_change(service.state().revision(),
                                                 *held,
                                                 std::chrono::ceil<std::chrono::milliseconds>(left),
                                                 [back] { answer_once_free(back); });
    if (back->exchange.keep) back->exchange.keep(std::move(wait));
    return;
  }
  if (!is_free) {
    back->reply.status = kAccepted;
    back->reply.headers.emplace_back("Location",
                                     fmt::format("/api/v1/gpu/allocations/{}", held->value));
  }
  back->exchange.respond(std::move(back->reply));
}

/// Of one who gave them back and is to get this answer.
std::shared_ptr<GivenBack> given_back(Exchange exchange, std::vector<JobId> jobs, Reply reply) {
  const MonoTime until = exchange.service.now().mono + kMaxAllocationWait;
  return std::make_shared<GivenBack>(
      GivenBack{std::move(exchange), std::move(jobs), std::move(reply), until});
}

/// Gives back what is chosen; chooses again where another request came before.
void clean_up(Exchange exchange, CleanupQuery query) {
  const auto jobs = to_clean_up(exchange, query.gpu_count);
  if (!jobs) return exchange.respond(problem(jobs.error()));
  api::GpuCleanup cleanup{.success = true, .node_name = exchange.segment};
  for (const Job* job : *jobs) {
    cleanup.released.push_back(job->id);
    cleanup.gpu_count += *gpus_on(*job, exchange.segment);
  }
  std::ranges::sort(cleanup.released);
  Service& service = exchange.service;
  engine::event::Cancel cancel{cleanup.released, exchange.caller, 0};
  const auto back = given_back(std::move(exchange), cleanup.released, json_reply_of(cleanup));
  const auto check = [back] {
    const auto is_left = [&state = back->exchange.service.state()](JobId id) {
      const Job* job = state.find(id);
      return job != nullptr && is_active(*job) && stop_of(*job) == nullptr;
    };
    back->is_chosen = std::ranges::all_of(back->jobs, is_left);
    return back->is_chosen ? Result<void>() : fail(Code::WrongState, "given back meanwhile");
  };
  service.request(
      std::move(cancel),
      [back, query](const Result<std::vector<JobId>>& done) {
        if (done) return answer_once_free(back);
        if (!back->is_chosen) return clean_up(std::move(back->exchange), query);
        back->exchange.respond(problem(done.error()));
      },
      check);
}

}  // namespace

void release_gpu_allocation(Exchange exchange) {
  const auto job = find_allocation(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const JobId id = (*job)->id;
  const auto back = given_back(exchange, {id}, json_reply(api::write_job_ids({id})));
  request_if_match(exchange,
                   {id},
                   engine::event::Cancel{{id}, exchange.caller, 0},
                   [back](const Result<std::vector<JobId>>& done) {
                     if (done) return answer_once_free(back);
                     back->exchange.respond(problem(done.error()));
                   });
}

void clean_up_gpus(Exchange exchange, CleanupQuery query) { clean_up(std::move(exchange), query); }

}  // namespace gflow::server
