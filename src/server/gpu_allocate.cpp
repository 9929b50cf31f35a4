// SPDX-License-Identifier: Apache-2.0
// GPUs held for a program outside. Each allocation is a job that runs nothing, so that all that is
// true of jobs (the queue, limits, restarts, who may end it) is true of it.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "api/gpu_resources.h"
#include "base/text.h"
#include "base/translate.h"
#include "base/word_hash.h"
#include "core/gpu_request.h"
#include "os/paths.h"
#include "server/answered_allocations.h"
#include "server/found_allocation.h"
#include "server/framework_setup.h"
#include "server/gpu_need.h"
#include "server/gpu_nodes.h"
#include "server/handlers.h"
#include "server/holder.h"
#include "server/shown.h"
#include "server/views.h"

namespace gflow::server {
namespace {

enum class Framework { None, Pytorch, Tensorflow };

/// What one key is not for, besides another need: an answer of another kind.
std::string asked_of(Framework framework) {
  if (framework == Framework::None) return "";
  return framework == Framework::Pytorch ? "pytorch " : "tensorflow ";
}

/// The allocation, with what the framework is to be told as it was asked for.
Result<api::GpuAllocation> view_of_need(const Exchange& exchange,
                                        const Job& job,
                                        const api::GpuNeed& need,
                                        Framework framework) {
  const Service& service = exchange.service;
  api::GpuAllocation view = view_of_allocation(exchange.caller, service, job);
  if (!view.gpu_config) return view;
  api::GpuConfig& config = *view.gpu_config;
  config.distributed_training = need.distributed_training;
  config.mixed_precision = need.mixed_precision;
  config.gpu_memory_fraction = need.gpu_memory_fraction;
  if (framework == Framework::None) return view;
  if (need.distributed_training) GF_CHECK(add_rendezvous(service.ports(job), config));
  if (framework == Framework::Tensorflow) {
    view.tensorflow_config =
        GF_TRY(tensorflow_config(need, config, *machine_of(service.state(), view.node_name)));
  } else {
    view.pytorch_config =
        GF_TRY(pytorch_config(need, config, *machine_of(service.state(), view.node_name)));
  }
  return view;
}

Reply reply_of(const Result<api::GpuAllocation>& view, int status = 200) {
  if (!view) return problem(view.error());
  Reply reply = short_reply_of(*view);
  reply.status = status;
  return reply;
}

/// One who asked for GPUs, until it is known whether the answer came. Whoever did not get it has no
/// use for them: they are given back.
struct Asked {
  Asked(Exchange from, api::GpuNeed wanted, Framework for_what)
      : exchange(std::move(from)), need(std::move(wanted)), framework(for_what) {}
  Asked(const Asked&) = delete;
  Asked& operator=(const Asked&) = delete;
  ~Asked() {
    // One that gave a key comes back with it for the answer.
    if (!is_known && job.is_set() && exchange.request.idempotency_key.empty()) give_back();
  }

  void give_back(Service::Answer then = {}) {
    exchange.service.request(engine::event::Cancel{{job}, exchange.caller, 0}, std::move(then));
    job = {};
  }

  Exchange exchange;
  api::GpuNeed need;
  Framework framework;
  JobId job{};
  std::string refusal = {};            ///< why there is no job
  std::atomic<bool> is_known = false;  ///< to whoever asked
};

/// Of the answer that tells of an allocation.
class Told : public Receipt {
 public:
  explicit Told(const std::shared_ptr<Asked>& asked)
      : asked_(*asked),
        job_(asked->job),
        noted_(asked->exchange.service.answered_allocations()),
        kept_(asked->exchange.fair_work->lend(asked)) {}

  void sending() override {
    if (noted_ != nullptr) noted_->note(job_);
    asked_.is_known = true;
  }
  void lost() override { asked_.is_known = false; }

 private:
  Asked& asked_;
  JobId job_;
  const AnsweredAllocations* noted_;
  std::shared_ptr<void> kept_;  ///< what was asked, which is let go of on the loop
};

void answer(const std::shared_ptr<Asked>& asked, Reply reply) {
  if (asked->exchange.fair_work == nullptr) {
    asked->is_known = true;
  } else if (asked->job.is_set()) {
    reply.receipt = std::make_shared<Told>(asked);
  }
  asked->exchange.respond(std::move(reply));
}

void await_start(const std::shared_ptr<Asked>& asked);

void wait_for_news(const std::shared_ptr<Asked>& asked) {
  const Exchange& exchange = asked->exchange;
  auto wait = exchange.service.on_change(
      exchange.service.state().revision(), asked->job, kMaxAllocationWait, [asked] {
        await_start(asked);
      });
  if (exchange.keep) exchange.keep(std::move(wait));
}

/// Until it is known whether it has its GPUs.
void await_start(const std::shared_ptr<Asked>& asked) {
  const Service& service = asked->exchange.service;
  const Job* job = service.state().find(asked->job);
  if (job == nullptr) {
    return answer(asked, problem(Error{Code::NotFound, tr("the allocation was forgotten")}));
  }
  if (status_of(*job) == Status::Starting) return wait_for_news(asked);
  const bool waits = is_pending(*job);
  Reply reply = reply_of(view_of_need(asked->exchange, *job, asked->need, asked->framework),
                         waits && asked->need.wait ? kAccepted : 200);
  if (reply.status == kAccepted) {
    reply.headers.emplace_back("Location",
                               fmt::format("/api/v1/gpu/allocations/{}", asked->job.value));
  }
  if (!waits || asked->need.wait) return answer(asked, std::move(reply));
  // Whoever is told no holds nothing, whenever gflowd is killed.
  asked->give_back([asked, reply = std::move(reply)](const Result<std::vector<JobId>>& /*any*/) {
    answer(asked, reply);
  });
}

/// What is asked for, and for whom: as far as the body says.
struct Wanted {
  gflow::Request request;
  HeldFor held_for;
};
api::Asked<Wanted> wanted_of(const api::GpuNeed& need,
                             const Principal& caller,
                             const engine::State& state) {
  auto request = request_of(need, state);
  if (!request) return std::unexpected(std::move(request).error());
  auto processes = held_for(need, caller);
  if (!processes) return std::unexpected(std::move(processes).error());
  return Wanted{*std::move(request), *processes};
}

Result<api::SubmitRequest> submission_of_need(const api::GpuNeed& need,
                                              Wanted wanted,
                                              const Principal& caller,
                                              const engine::Policy& policy) {
  api::SubmitRequest::Item item;
  item.spec.user = GF_TRY(job_owner(caller));
  item.spec.request = std::move(wanted.request);
  item.spec.name = "allocation";
  item.spec.allocation = true;
  item.spec.command = "allocation of " + gpu_request_text(item.spec.request);
  item.spec.work_dir = "/";
  if (need.ttl_seconds > 0) {
    item.spec.time_limit = std::chrono::seconds(need.ttl_seconds);
  } else if (need.pid == 0) {
    item.spec.time_limit = policy.allocation_ttl;
  }
  item.payload.argv = holder_command(GF_TRY(os::helper_program("gflow-shim")), wanted.held_for);
  api::SubmitRequest request;
  request.items.push_back(std::move(item));
  return request;
}

/// What is allocated is for these processes, which a job they are of may keep from opening it.
Result<void> check_can_be_opened(const Service& service, const HeldFor& held_for) {
  for (const auto& process : {held_for.owner, held_for.waiter}) {
    const auto its = process ? service.owner_of(process->pid) : std::nullopt;
    const Job* job = its ? service.state().find(*its) : nullptr;
    if (job == nullptr) continue;
    if (service.gpu_isolation(*job).value_or(GpuIsolation::None) == GpuIsolation::None) continue;
    return fail(Code::WrongState,
                tr_format("process {} belongs to job {}, which cannot open GPUs that it was not "
                          "given: request them with that job ('gbatch --gpus'), or from outside "
                          "of jobs",
                          process->pid,
                          job->id.value));
  }
  return {};
}

/// Why it could not start now if nothing waited ahead; "" if it could.
std::string refusal_of(const Exchange& exchange, const JobSpec& spec) {
  const Service& service = exchange.service;
  const auto starts = service.state().starts(spec, 1);
  if (!starts) return starts.error().message;
  if (!starts->jobs.empty()) return "";
  if (starts->limit) return why_text({*starts->limit});
  const auto preview = service.state().preview(spec, service.now());
  if (!preview) return preview.error().message;
  return why_text(Shown(exchange.caller, service.state()).of(preview->blockers, spec.user));
}

/// Of one that has started: GPUs are not held for what cannot be told how to use them.
Result<void> check_can_be_told(const Asked& asked, const Job& job) {
  (void)GF_TRY(view_of_need(asked.exchange, job, asked.need, asked.framework));
  return {};
}

/// Taken whether it starts with that or waits.
SubmitIf if_it_can_be_told(const std::shared_ptr<Asked>& asked) {
  return {.before = {}, .after = [asked](JobId id) -> Result<void> {
            const Job* job = asked->exchange.service.state().find(id);
            if (job == nullptr || is_pending(*job)) return {};
            return check_can_be_told(*asked, *job);
          }};
}

/// Taken where it starts with that: who does not wait has no place in the queue, and is told why.
SubmitIf if_it_starts(const std::shared_ptr<Asked>& asked, JobSpec spec) {
  const auto refuse = [asked](std::string why) -> Result<void> {
    asked->refusal = std::move(why);
    if (asked->refusal.empty()) return {};
    return fail(Code::Exhausted, asked->refusal);
  };
  return {.before = [asked,
                     refuse,
                     spec = std::move(spec)] { return refuse(refusal_of(asked->exchange, spec)); },
          .after =
              [asked, refuse](JobId id) {
                const Exchange& exchange = asked->exchange;
                const Job* job = exchange.service.state().find(id);
                if (job == nullptr) return refuse("");
                if (!is_pending(*job)) return check_can_be_told(*asked, *job);
                return refuse(why_text(blockers_for(exchange.caller, exchange.service, *job)));
              }};
}

void allocate(Exchange exchange, api::GpuNeed need, Framework framework) {
  Service& service = exchange.service;
  if (auto unknown = check_devices_known(node_views_for(exchange.caller, service))) {
    return exchange.respond(problem(*unknown, kUnavailable));
  }
  if (need.allocation_id.is_set()) {
    const auto job = find_allocation(exchange, need);
    if (!job) return exchange.respond(problem(job.error()));
    const auto view = view_of_need(exchange, **job, need, framework);
    if (!view) return exchange.respond(problem(view.error()));
    const auto same = check_is_of(need, **job, view->gpu_config, service.state());
    return exchange.respond(same ? reply_of(view) : problem(same.error()));
  }
  auto wanted = wanted_of(need, exchange.caller, service.state());
  if (!wanted) return exchange.respond(problem(wanted.error()));
  if (const auto opens = check_can_be_opened(service, wanted->held_for); !opens) {
    return exchange.respond(problem(opens.error()));
  }
  auto request =
      submission_of_need(need, *std::move(wanted), exchange.caller, service.state().policy());
  if (!request) return exchange.respond(problem(request.error()));
  request->idempotency_key = exchange.request.idempotency_key;
  request->digest = digest_of(asked_of(framework) + api::write(need));
  const auto asked = std::make_shared<Asked>(std::move(exchange), std::move(need), framework);
  const SubmitIf condition = asked->need.wait ? if_it_can_be_told(asked)
                                              : if_it_starts(asked, request->items.front().spec);
  service.submit(
      std::move(*request),
      asked->exchange.caller,
      [asked](const Result<std::vector<JobId>>& jobs) {
        if (!asked->refusal.empty()) {
          return answer(asked, short_reply_of(api::GpuAllocation{.error_message = asked->refusal}));
        }
        if (!jobs) return answer(asked, problem(jobs.error()));
        asked->job = jobs->front();
        await_start(asked);
      },
      condition);
}

template <Framework kFramework>
void allocate_for(Exchange exchange) {
  read_body<api::GpuNeed>(
      std::move(exchange), api::read_gpu_need, [](Exchange known, api::GpuNeed need) {
        allocate(std::move(known), std::move(need), kFramework);
      });
}

}  // namespace

void allocate_gpus(Exchange exchange) { allocate_for<Framework::None>(std::move(exchange)); }

void set_up_pytorch(Exchange exchange) { allocate_for<Framework::Pytorch>(std::move(exchange)); }

void set_up_tensorflow(Exchange exchange) {
  allocate_for<Framework::Tensorflow>(std::move(exchange));
}

}  // namespace gflow::server
