// SPDX-License-Identifier: Apache-2.0
// Allocations: GPUs held for a program outside. Each is a job that runs nothing, so that all that
// is true of jobs (the queue, limits, restarts, who may end it) is true of it.
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
#include "core/stop.h"
#include "os/paths.h"
#include "os/process.h"
#include "server/answered_allocations.h"
#include "server/framework_setup.h"
#include "server/gpu_need.h"
#include "server/gpu_nodes.h"
#include "server/handlers.h"
#include "server/holder.h"
#include "server/job_tag.h"
#include "server/views.h"

namespace gflow::server {
namespace {

enum class Framework { None, Pytorch, Tensorflow };

constexpr std::chrono::seconds kMaxWait{50};  // less than a client waits for an answer
constexpr int kAccepted = 202;

/// What one key is not for, besides another need: an answer of another kind.
std::string asked_of(Framework framework) {
  if (framework == Framework::None) return "";
  return framework == Framework::Pytorch ? "pytorch " : "tensorflow ";
}

const Machine* machine_of(const engine::State& state, const std::string& node) {
  const auto found = state.nodes().find(node);
  return found == state.nodes().end() ? nullptr : &found->second.machine;
}

std::string expiry_of(const Job& job, const Attempt& attempt) {
  return job.spec.time_limit ? timestamp_of(attempt.started + *job.spec.time_limit) : "";
}

/// What belongs to an allocation, whoever asks.
api::GpuAllocation view_of_allocation(const Service& service, const Job& job) {
  const engine::State& state = service.state();
  api::GpuAllocation view;
  view.allocation_id = job.id;
  view.state = status_name(status_of(job));
  view.owner = job.spec.user.name;
  const Attempt* attempt = attempt_of(job);
  const Machine* machine =
      attempt == nullptr ? nullptr : machine_of(state, attempt->allocation.node);
  if (const auto* ended = std::get_if<Ended>(&job.state)) {
    view.error_message = outcome_text(ended->outcome);
  } else if (machine == nullptr) {
    view.error_message = why_text(state.blockers(job.id, service.now()));
  }
  if (machine == nullptr || !view.error_message.empty()) return view;
  view.success = true;
  view.node_name = attempt->allocation.node;
  view.expires_at = expiry_of(job, *attempt);
  view.gpu_config = config_of(job, *attempt, *machine);
  return view;
}

/// The same, with what was asked for besides.
Result<api::GpuAllocation> view_of_need(const Service& service,
                                        const Job& job,
                                        const api::GpuNeed& need,
                                        Framework framework) {
  api::GpuAllocation view = view_of_allocation(service, job);
  if (!view.gpu_config) return view;
  api::GpuConfig& config = *view.gpu_config;
  config.distributed_training = need.distributed_training;
  config.mixed_precision = need.mixed_precision;
  config.gpu_memory_fraction = need.gpu_memory_fraction;
  if (framework == Framework::None) return view;
  if (need.distributed_training) GF_CHECK(add_rendezvous(config));
  if (framework == Framework::Tensorflow) {
    view.tensorflow_config = tensorflow_config(need, config);
  } else {
    view.pytorch_config =
        pytorch_config(need, config, *machine_of(service.state(), view.node_name));
  }
  return view;
}

Reply reply_of(const Result<api::GpuAllocation>& view, int status = 200) {
  if (!view) return problem(view.error());
  Reply reply = json_reply_of(*view);
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

  void give_back() {
    exchange.service.request(engine::event::Cancel{{job}, exchange.caller, 0}, {});
    job = {};
  }

  Exchange exchange;
  api::GpuNeed need;
  Framework framework;
  JobId job{};
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
      exchange.service.state().revision(), asked->job, kMaxWait, [asked] { await_start(asked); });
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
  Reply reply = reply_of(view_of_need(service, *job, asked->need, asked->framework),
                         waits && asked->need.wait ? kAccepted : 200);
  if (waits && !asked->need.wait) asked->give_back();
  answer(asked, std::move(reply));
}

/// A process of the caller's; none for 0. Errors: Permission for one of another user, NotFound.
Result<std::optional<ProcessId>> process_of(int pid, const Principal& caller, const char* field) {
  if (pid == 0) return std::nullopt;
  const auto facts = GF_TRY(os::find_process(pid));
  const auto owner = os::process_owner(pid);
  if (!facts || !owner || !os::is_process(pid)) {
    return fail(Code::NotFound, tr_format("{}: there is no process {}", field, pid));
  }
  if (caller.uid != *owner) {
    return fail(Code::Permission, tr_format("{}: process {} is not yours", field, pid));
  }
  return ProcessId{pid, facts->start_time};
}

/// What is run in place of a program.
Result<std::vector<std::string>> holder(const api::GpuNeed& need, const Principal& caller) {
  HeldFor held_for;
  held_for.owner = GF_TRY(process_of(need.pid, caller, "/pid"));
  held_for.waiter = GF_TRY(process_of(need.wait_pid, caller, "/wait_pid"));
  return holder_command(GF_TRY(os::helper_program("gflow-shim")), held_for);
}

Result<api::SubmitRequest> submission_of_need(const api::GpuNeed& need,
                                              const Principal& caller,
                                              const engine::Policy& policy) {
  api::SubmitRequest::Item item;
  item.spec.user = GF_TRY(job_owner(caller));
  item.spec.request = GF_TRY(request_of(need));
  item.spec.name = "allocation";
  item.spec.allocation = true;
  item.spec.command = "allocation of " + gpu_request_text(item.spec.request);
  item.spec.work_dir = "/";
  if (need.ttl_seconds > 0) {
    item.spec.time_limit = std::chrono::seconds(need.ttl_seconds);
  } else if (need.pid == 0) {
    item.spec.time_limit = policy.allocation_ttl;
  }
  item.payload.argv = GF_TRY(holder(need, caller));
  api::SubmitRequest request;
  request.items.push_back(std::move(item));
  return request;
}

/// Why it could not start now; "" if it could.
std::string refusal_of(const Service& service, const JobSpec& spec) {
  const auto starts = service.state().starts(spec, 1);
  if (!starts) return starts.error().message;
  if (!starts->jobs.empty()) return "";
  if (starts->limit) return why_text({*starts->limit});
  const auto preview = service.state().preview(spec, service.now());
  return preview ? why_text(preview->blockers) : preview.error().message;
}

/// An allocation of this caller that there is. Errors: NotFound, Permission.
Result<const Job*> find_allocation(const Exchange& exchange, JobId id) {
  const Job* job = exchange.service.state().find(id);
  if (job == nullptr || !job->spec.allocation) {
    return fail(Code::NotFound, tr_format("there is no allocation {}", id.value));
  }
  GF_CHECK(may_change(exchange.caller, id, job->spec.user));
  return job;
}

Result<const Job*> find_allocation(const Exchange& exchange) {
  const auto number = parse_number(exchange.segment);
  return find_allocation(exchange, JobId(number.value_or(0)));
}

void allocate(Exchange exchange, api::GpuNeed need, Framework framework) {
  Service& service = exchange.service;
  if (auto unknown = check_devices_known(node_views(service))) {
    return exchange.respond(problem(*unknown, 503));
  }
  if (need.allocation_id.is_set()) {
    const auto job = find_allocation(exchange, need.allocation_id);
    if (!job) return exchange.respond(problem(job.error()));
    return exchange.respond(reply_of(view_of_need(service, **job, need, framework)));
  }
  auto request = submission_of_need(need, exchange.caller, service.state().policy());
  if (!request) return exchange.respond(problem(request.error()));
  const bool may_be_known = !exchange.request.idempotency_key.empty();
  const std::string refusal =
      need.wait || may_be_known ? "" : refusal_of(service, request->items.front().spec);
  if (!refusal.empty()) {
    return exchange.respond(json_reply_of(api::GpuAllocation{.error_message = refusal}));
  }
  request->idempotency_key = exchange.request.idempotency_key;
  request->digest = digest_of(asked_of(framework) + api::write(need));
  const auto asked = std::make_shared<Asked>(std::move(exchange), std::move(need), framework);
  service.submit(
      std::move(*request), asked->exchange.caller, [asked](const Result<std::vector<JobId>>& jobs) {
        if (!jobs) return answer(asked, problem(jobs.error()));
        asked->job = jobs->front();
        await_start(asked);
      });
}

template <Framework kFramework>
void allocate_for(Exchange exchange) {
  read_body<api::GpuNeed>(
      std::move(exchange), api::read_gpu_need, [](Exchange known, api::GpuNeed need) {
        allocate(std::move(known), std::move(need), kFramework);
      });
}

/// The caller's, which may be among very many jobs: looked for some at a time.
struct AllocationListing {
  Exchange exchange;
  JobQuery query;
  api::GpuAllocations found;
};

/// Looks at some more; whether these were all.
bool go_on(AllocationListing& listing) {
  constexpr std::size_t kSeenPerPiece = 1000;
  const Service& service = listing.exchange.service;
  const auto some = service.state().list_some(listing.query, kSeenPerPiece);
  for (const Job* job : some.jobs) {
    listing.query.after = job->id;
    if (!job->spec.allocation) continue;
    listing.found.allocations.push_back(view_of_allocation(service, *job));
  }
  if (some.more_after) listing.query.after = *some.more_after;
  return !some.more_after;
}

void go_on_listing(const std::shared_ptr<AllocationListing>& listing) {
  Exchange& exchange = listing->exchange;
  while (!go_on(*listing)) {
    if (exchange.fair_work == nullptr) continue;
    return exchange.fair_work->later(exchange.caller, [listing] { go_on_listing(listing); });
  }
  exchange.respond(json_reply_of(std::move(listing->found)));
}

int gpus_on(const Job& job, std::string_view node) {
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || attempt->allocation.node != node) return 0;
  return static_cast<int>(attempt->allocation.gpus.size());
}

/// What to give back of a node: all of it, or the newest allocation of so many GPUs. Errors:
/// NotFound saying what there is.
Result<std::vector<const Job*>> to_clean_up(const Exchange& exchange,
                                            std::optional<std::uint64_t> count) {
  std::vector<const Job*> there =
      exchange.service.state().list({.statuses = kActive, .users = {exchange.caller.name}});
  std::erase_if(there, [&exchange](const Job* job) {
    return !job->spec.allocation || stop_of(*job) != nullptr ||
           gpus_on(*job, exchange.segment) == 0;
  });
  std::ranges::reverse(there);  // the newest first
  if (there.empty()) {
    return fail(Code::NotFound,
                tr_format("you have no allocation on node '{}'", printable(exchange.segment)));
  }
  if (!count) return there;
  std::string sizes;
  for (const Job* job : there) {
    const int gpus = gpus_on(*job, exchange.segment);
    if (std::cmp_equal(gpus, *count)) return std::vector<const Job*>{job};
    sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", gpus);
  }
  return fail(Code::NotFound,
              tr_format("you have no allocation of {} GPUs on node '{}', but of {}",
                        *count,
                        printable(exchange.segment),
                        sizes));
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
  if (!is_free) back->reply.status = kAccepted;
  back->exchange.respond(std::move(back->reply));
}

/// Of one who gave them back and is to get this answer.
std::shared_ptr<GivenBack> given_back(Exchange exchange, std::vector<JobId> jobs, Reply reply) {
  const MonoTime until = exchange.service.now().mono + kMaxWait;
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
    cleanup.gpu_count += gpus_on(*job, exchange.segment);
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

void renew(Exchange exchange, api::GpuRenewal renewal) {
  const auto job = find_allocation(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  const auto ran =
      std::chrono::ceil<std::chrono::seconds>(run_time_of(**job, exchange.service.now().mono));
  JobChanges changes;
  changes.set(&JobSpec::time_limit, ran + std::chrono::seconds(renewal.ttl_seconds));
  Service& service = exchange.service;
  service.request(engine::event::Update{{(*job)->id}, exchange.caller, std::move(changes)},
                  [&service, id = (*job)->id, respond = std::move(exchange.respond)](
                      const Result<std::vector<JobId>>& changed) {
                    if (!changed) return respond(problem(changed.error()));
                    const Job* its = service.state().find(id);
                    if (its == nullptr) return respond(empty_reply());
                    respond(json_reply_of(view_of_allocation(service, *its)));
                  });
}

}  // namespace

void allocate_gpus(Exchange exchange) { allocate_for<Framework::None>(std::move(exchange)); }

void set_up_pytorch(Exchange exchange) { allocate_for<Framework::Pytorch>(std::move(exchange)); }

void set_up_tensorflow(Exchange exchange) {
  allocate_for<Framework::Tensorflow>(std::move(exchange));
}

void list_gpu_allocations(Exchange exchange) {
  JobQuery query{.statuses = kNotEnded, .users = {exchange.caller.name}};
  go_on_listing(std::make_shared<AllocationListing>(
      AllocationListing{std::move(exchange), std::move(query), {}}));
}

void show_gpu_allocation(Exchange exchange) {
  const auto job = find_allocation(exchange);
  if (!job) return exchange.respond(problem(job.error()));
  Reply reply = json_reply_of(view_of_allocation(exchange.service, **job));
  reply.headers.emplace_back("ETag", version_of_job(exchange.caller, exchange.service, **job));
  exchange.respond(std::move(reply));
}

void renew_gpu_allocation(Exchange exchange) {
  read_body<api::GpuRenewal>(std::move(exchange), api::read_gpu_renewal, renew);
}

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
