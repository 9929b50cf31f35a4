// SPDX-License-Identifier: Apache-2.0
#include "engine/step_internal.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "base/translate.h"
#include "core/gpu_config.h"
#include "core/stop.h"
#include "engine/step.h"

namespace gflow::engine {

std::vector<Effect> step(State& state, const Event& event, Now now) {
  Step step(*state.index_, now);
  std::visit([&step](const auto& happened) { step.take(happened); }, event);
  return step.finish();
}

Step::Step(Index& index, Now now) : index_(index) {
  index_.jobs.pack();
  pass_time(now);
}

/// Where nothing happened that decides, what was decided before stands, and when to wake.
std::vector<Effect> Step::finish() {
  if (!decides_) return std::move(effects_);
  ++index_.passes;
  if (index_.forget_removed()) health_changed_ = true;
  // Once each: a thousand dependencies that end together are one piece of news.
  for (const JobId id : waits_changed_) effects_.emplace_back(effect::Notify{id});
  schedule();
  if (try_failed_again()) schedule();
  order_slices();
  index_.fair.forget_released();
  if (health_changed_) effects_.emplace_back(effect::SaveHealth{});
  prune();
  wake();
  return std::move(effects_);
}

/// Opens the gates time has reached; closes those that a calendar set back has put ahead again.
void Step::pass_time(Now now) {
  const bool set_back = now.wall < index_.now.wall;
  index_.now = now;
  std::vector<JobId> due;
  for (const auto& [at, id] : index_.begin_later) {
    if (at > now.wall) break;
    due.push_back(id);
  }
  if (set_back) {
    for (const auto& [at, id] : index_.begun) due.push_back(id);
  }
  for (const auto& [at, id] : index_.backoff) {
    if (at > index_.lived()) break;
    due.push_back(id);
  }
  for (const JobId id : due) index_.relink(id);
  time_decides_ = !due.empty();
  retry_nodes();
  index_.learn();
}

void Step::saved(JobId id, Happening what) {
  effects_.emplace_back(effect::Save{id, what});
  effects_.emplace_back(effect::Notify{id});
}

void Step::answer(Result<std::vector<JobId>> jobs) {
  effects_.emplace_back(effect::Answer{std::move(jobs)});
}

Result<const Job*> Step::changeable(JobId id, const Principal& by) const {
  const Job* job = index_.find(id);
  if (job == nullptr || !knows_of(by, job->spec.user)) {
    return fail(Code::NotFound,
                tr_format("there is no job {}; 'gqueue -a' lists all jobs", id.value));
  }
  GF_CHECK(may_change(by, id, job->spec.user));
  return job;
}

namespace {

/// "node n2 was removed", "node n2 was removed: burnt out".
std::string removed_text(const event::NodeRemoved& event) {
  return event.why.empty() ? kept<Kept::NodeRemoved>(event.node)
                           : kept<Kept::NodeRemovedFor>(event.node, event.why);
}

/// A reading may have begun before it left the device by a move.
bool left_lately(const Job* job, int gpu, MonoTime now) {
  constexpr std::chrono::seconds kOldestReading{30};
  const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
  return running != nullptr && running->left && running->left->gpu == gpu &&
         now - running->left->at < kOldestReading;
}

bool is_to_be_stopped(const Job& job, const effect::Overuse& overuse, const Policy& policy) {
  if (!policy.stop_overuse || stop_of(job) != nullptr) return false;
  if (!overuse.reserved) return !job.spec.request.see_all;
  return overuse.used.value_or(Memory{}) > *overuse.reserved + policy.overuse_margin;
}

}  // namespace

void Step::take(const event::NodesChanged& event) {
  bool is_news = false;
  decides_ = time_decides_;
  for (const Machine& machine : event.nodes) {
    if (index_.note_idle(machine)) decides_ = true;  // when it may be lent
    NodeRecord told{machine};
    if (const auto at = event.unreachable.find(machine.name); at != event.unreachable.end()) {
      told.unreachable = at->second;
    }
    NodeRecord& known = index_.nodes[machine.name];
    if (known == told) continue;
    const bool shown_only = known.unreachable == told.unreachable &&
                            known.removed == told.removed &&
                            decides_alike(known.machine, told.machine);
    if (known.removed) index_.removed.erase(machine.name);
    const bool now_parks = told.machine.parks && !known.machine.parks;
    // What can be cut of it, which the ledger knows nothing of.
    if (known.machine.mig_gpus != told.machine.mig_gpus) decides_ = true;
    known = std::move(told);
    note_slices(known.machine);
    if (shown_only) continue;
    is_news = true;
    if (index_.find_drained(known.machine)) effects_.emplace_back(effect::SaveDrains{});
    if (index_.put_node(known) || now_parks) decides_ = true;
    tell_overuse(known.machine);
  }
  if (!is_news) return;
  index_.sort_nodes();
  index_.count_gpus();
  ++index_.revision;
}

/// It is told to end, for this reason.
void Step::note_stop(JobId id, const Stop& stop) {
  index_.change(id, [&stop](Job& changed) {
    if (auto* starting = std::get_if<Starting>(&changed.state)) starting->stop = stop;
    if (auto* running = std::get_if<Running>(&changed.state)) running->stop = stop;
  });
  saved(id, Happening::Stopping);
}

void Step::stop(JobId id, const Stop& stop) {
  note_stop(id, stop);
  effects_.emplace_back(effect::StopAttempt{id, attempt_of(*index_.find(id))->number});
}

/// Once for each attempt under way, and once more when it is stopped, if that is later.
void Step::tell(bool Attempt::* told, effect::Overuse overuse) {
  const Job* job = index_.find(overuse.job);
  const Attempt* attempt = job != nullptr && is_active(*job) ? attempt_of(*job) : nullptr;
  if (attempt == nullptr) return;
  overuse.is_stopped = is_to_be_stopped(*job, overuse, index_.policy);
  if (attempt->*told && !overuse.is_stopped) return;
  index_.change(overuse.job, [told](Job& changed) {
    if (auto* starting = std::get_if<Starting>(&changed.state)) starting->attempt.*told = true;
    if (auto* running = std::get_if<Running>(&changed.state)) running->attempt.*told = true;
  });
  effects_.emplace_back(effect::Save{overuse.job});
  // By nobody: what it did is said when it has ended.
  if (overuse.is_stopped) stop(overuse.job, Stop{EndReason::Cancelled, User{}, 0});
  effects_.emplace_back(overuse);
}

/// What the attempts under way use of the devices beyond what they were given.
void Step::tell_overuse(const Machine& machine) {
  for (const Device& device : machine.devices) {
    for (const JobUse& use : device.uses) {
      const Job* job = index_.find(JobId(use.job));
      if (job == nullptr || !is_active(*job)) continue;
      for (const GpuMemoryUse& memory : index_.gpu_memory_of(*job)) {
        const bool is_over_here =
            memory.node == machine.name && memory.gpu == device.index && memory.is_over();
        if (!is_over_here) continue;
        tell(&Attempt::over_memory, {job->id, device.index, memory.used, memory.reserved});
      }
    }
    for (const DeviceProcess& process : device.processes) {
      if (!process.job) continue;
      if (left_lately(index_.find(*process.job), device.index, index_.now.mono)) continue;
      tell(&Attempt::on_other_gpus, {*process.job, device.index, process.memory, std::nullopt});
    }
  }
}

void Step::take(const event::NodeUnreachable& event) {
  const auto at = index_.nodes.find(event.node);
  if (at == index_.nodes.end() || at->second.unreachable == event.why) return;
  at->second.unreachable = event.why;
  index_.put_node(at->second);
  ++index_.revision;
}

void Step::take(const event::NodeRemoved& event) {
  const auto at = index_.nodes.find(event.node);
  if (at == index_.nodes.end() || at->second.removed) return;
  at->second.removed = event.why;
  index_.removed.insert(event.node);
  index_.put_node(at->second);
  index_.count_gpus();
  ++index_.revision;
  for (const JobId id : index_.started_on(event.node)) {
    const Job& job = *index_.find(id);
    const Outcome lost{.reason = EndReason::Rebooted,
                       .message = removed_text(event),
                       .run_time = run_time_of(job, index_.now.mono)};
    take(event::AttemptEnded{id, attempt_of(job)->number, lost});
  }
}

void Step::take(const event::Drain& event) {
  if (auto drained = index_.drain(event); !drained) {
    return answer(std::unexpected(drained.error()));
  }
  ++index_.revision;
  effects_.emplace_back(effect::SaveDrains{});
  answer(std::vector<JobId>{});
}

void Step::take(const event::Tick& /*event*/) {}

void Step::take(const event::Configure& event) {
  index_.set_policy(event.policy);
  index_.put_nodes();
  ++index_.revision;
}

/// The job is over, and with it whatever depended on it and can no longer be.
void Step::end(JobId id, Status status, const Outcome& outcome) {
  index_.change(id, [&](Job& job) {
    std::optional<Attempt> last;
    if (const Attempt* attempt = attempt_of(job)) last = *attempt;
    job.state = Ended{status, outcome, index_.now.wall, std::move(last), index_.lived()};
  });
  if (attempt_of(*index_.find(id)) != nullptr) index_.placer->departed(index_.ledger);
  index_.charge(*index_.find(id));
  saved(id, Happening::Ended);
  settle_dependents(id);
}

/// The job waits for others that will never do, and is not to be kept then.
bool Step::is_hopeless(const Job& job) const {
  return is_pending(job) &&
         engine::is_hopeless(job.spec.dependencies, index_.dependencies.state(job.id));
}

/// Names the job at the beginning of the chain.
Outcome Step::hopeless_outcome(const Job& job) const {
  Outcome outcome{.reason = EndReason::DependencyFailed};
  for (const JobId id : job.spec.dependencies.jobs) {
    const Job* before = index_.find(id);
    const Ended* end = before == nullptr ? nullptr : std::get_if<Ended>(&before->state);
    if (end == nullptr || end->status == Status::Finished) continue;
    const bool has_cause =
        end->outcome.reason == EndReason::DependencyFailed && !end->outcome.message.empty();
    outcome.message = has_cause ? end->outcome.message
                                : kept<Kept::DependencyEnded>(id.value, status_name(end->status));
    break;
  }
  return outcome;
}

/// Breadth first over all that hangs on a job that ended: a chain of any length needs no stack.
void Step::settle_dependents(JobId ended) {
  std::vector<JobId> over = {ended};
  for (std::size_t next = 0; next < over.size(); ++next) {
    const std::set<JobId>& dependents = index_.dependencies.dependents(over[next]);
    const std::vector<JobId> waiting(dependents.begin(), dependents.end());
    index_.dependencies.count_end(over[next], index_.end_of(over[next]));
    for (const JobId id : waiting) {
      if (!is_hopeless(*index_.find(id))) {
        if (index_.dependencies.state(id) == DependencyState::Met) index_.relink(id);
        waits_changed_.insert(id);
        continue;
      }
      const Outcome outcome = hopeless_outcome(*index_.find(id));
      index_.change(id, [&](Job& dependent) {
        dependent.state =
            Ended{Status::Cancelled, outcome, index_.now.wall, std::nullopt, index_.lived()};
      });
      saved(id, Happening::Ended);
      over.push_back(id);
    }
  }
}

void Step::to_queue(JobId id, Queued queued) {
  index_.change(id, [&](Job& job) { job.state = queued; });
  saved(id, Happening::Requeued);
}

/// Forgets ended jobs that are too old or too many.
void Step::prune() {
  index_.pin_ended();
  const Policy& policy = index_.policy;
  const EndedJobs::Limits limits{.keep = policy.keep_ended,
                                 .jobs = policy.max_ended,
                                 .user_bytes = policy.max_stored_per_user.bytes};
  while (const auto id = index_.ended.next(index_.lived(), limits)) {
    const WallTime ended = std::get<Ended>(index_.find(*id)->state).at;
    index_.forgotten = std::max(index_.forgotten.value_or(ended), ended);
    index_.erase(*id);
    effects_.emplace_back(effect::Forget{*id});
  }
}

void Step::wake() {
  effect::WakeAt wake;
  if (!index_.begin_later.empty()) wake.wall = index_.begin_later.begin()->first;
  const auto at_mono = [&wake](MonoTime at) { wake.mono = std::min(wake.mono.value_or(at), at); };
  if (const auto guarded = index_.next_guard()) at_mono(*guarded);
  if (!index_.backoff.empty()) at_mono(index_.mono_at(index_.backoff.begin()->first));
  for (const auto& [node, health] : index_.health) {
    if (!health.trial && health.retry_at > index_.lived()) at_mono(index_.mono_at(health.retry_at));
  }
  if (!index_.ready.empty()) {
    if (const auto look = index_.next_look()) at_mono(index_.now.mono + *look);
    if (const auto lend = index_.next_lend()) at_mono(*lend);
  }
  if (const auto cut = next_cut(index_)) at_mono(*cut);
  if (wake.wall || wake.mono) effects_.emplace_back(wake);
}

}  // namespace gflow::engine
