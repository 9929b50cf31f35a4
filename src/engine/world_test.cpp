// SPDX-License-Identifier: Apache-2.0
#include "engine/world_test.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "core/blocker.h"
#include "core/machine_for_tests.h"

namespace gflow::engine::world {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

Outcome outcome_of(EndReason reason) {
  Outcome outcome;
  outcome.reason = reason;
  return outcome;
}

/// To those alike right before it, as a store keeps jobs that wait.
void add_to(std::vector<JobRange>& ranges, const Job& job) {
  if (!ranges.empty() && is_pending(job)) {
    JobRange& last = ranges.back();
    const std::uint64_t before = last.count++;
    if (last.at(before) == job) return;
    if (before == 1) {
      for (const Naming naming : {Naming{.by_id = true}, Naming{.step = 1}}) {
        last.naming = naming;
        if (naming.step == 0 || last.first.spec.name.starts_with("exp_")) {
          if (last.at(0) == last.first && last.at(1) == job) return;
        }
      }
      last.naming = {};
    }
    last.count = before;
  }
  ranges.push_back({.first = job});
}

}  // namespace

void showValue(const Act& act, std::ostream& out) {
  out << fmt::format(
      "\n{{.kind = Act::Kind({}), .which = {}, .gpus = {}, .nodes = {}, .percent = {}, .gigabytes "
      "= "
      "{}, .priority = {}, .limit = {}, .preemption = Preemption({}), .begin = {}, .group = {}, "
      ".retries = {}, .after = {}, .tasks = {}}}",
      static_cast<int>(act.kind),
      act.which,
      act.gpus,
      act.nodes,
      act.percent,
      act.gigabytes,
      act.priority,
      act.limit,
      static_cast<int>(act.preemption),
      act.begin,
      act.group,
      act.retries,
      act.after,
      act.tasks);
}

JobSpec spec_of(const Act& act, WallTime now) {
  JobSpec spec;
  spec.user = {static_cast<std::uint32_t>(1000 + act.which % 2), "someone"};
  spec.request.gpus = act.gpus;
  spec.request.nodes = act.nodes;
  if (act.gpus == 1 && act.percent < 100) {
    spec.request.mode = GpuMode::Fraction;
    spec.request.share = Share::percent(act.percent);
  }
  if (act.gpus > 0) spec.request.gpu_memory = Memory::gib(act.gigabytes);
  spec.priority = act.priority;
  spec.preemption = act.preemption;
  if (act.limit > 0) spec.time_limit = minutes(act.limit);
  if (act.begin > 0) spec.begin = now + minutes(act.begin);
  if (act.group > 0) {
    spec.group = fmt::format("group{}", act.group);
    spec.max_concurrent = act.group;
  }
  spec.max_retries = act.retries;
  spec.requeue = act.retries > 0;
  return spec;
}

World::World(Order order) : state_({}, "boot"), now_{WallTime(10'000h), MonoTime(10'000h)} {
  policy_.order.order = order;
  policy_.lend_idle_after = 1800s;
  state_ = State(policy_, "boot");
  state_.restored(JobId(1));
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = fmt::format("n{}", i);
    machines_[name] = machine(name);
  }
  hear_of_nodes();
}

Machine World::machine(const std::string& name) const {
  Machine made = machine_with_gpus(name, kGpus, "NVIDIA T4", kGpuMemory);
  made.memory = kHostMemory;
  made.parks = true;
  for (Device& device : made.devices) device.uuid = fmt::format("GPU-{}-{}", name, device.index);
  return made;
}

void World::hear_of_nodes() {
  event::NodesChanged there;
  for (const auto& [name, machine] : machines_) there.nodes.push_back(machine);
  there.unreachable = silent_;
  tell(there);
}

void World::restart() {
  const auto lived = state_.lived(now_.mono);
  const JobId next_id = state_.next_id();
  state_ = State(policy_, "boot");
  std::vector<JobRange> ranges;
  for (const auto& [id, job] : saved_) add_to(ranges, job);
  for (const JobRange& range : ranges) {
    if (range.count == 1) state_.restore(Job(range.first));
  }
  for (const JobRange& range : ranges) {
    if (range.count > 1) state_.restore(JobRange(range));
  }
  state_.restore(drains_);
  state_.restore(unhealthy_);
  state_.set_lived(lived, now_.mono);
  state_.restored(next_id);
  for (const auto& [job, attempt] : watching_) {
    take(step(state_, event::AttemptStarted{job, attempt, 1, true}, now_));
  }
  for (const auto& [attempt, parked] : parked_) {
    take(step(state_, event::ParkingChanged{attempt.first, attempt.second, parked}, now_));
  }
  hear_of_nodes();
}

void World::heal() {
  launches_ = 0;
  silent_.clear();
  for (int i = 0; i < kNodes; ++i) {
    const std::string name = fmt::format("n{}", i);
    machines_[name] = machine(name);
  }
  const OrderRules order = policy_.order;
  policy_ = {};
  policy_.order = order;
  tell(event::Configure{policy_});
  hear_of_nodes();
  while (!state_.drains().empty()) {
    tell(event::Drain{state_.drains().front(), true, system_principal()});
  }
  withheld_ = false;
  tell(event::Tick{});
  std::vector<JobId> held;  // a job that waits is not to be looked at over a step
  for (const Job* job : jobs(Status::Hold)) held.push_back(job->id);
  for (const JobId id : held) tell(event::Release{{id}, system_principal(), std::nullopt});
  std::vector<JobId> suspended;
  for (const Job* job : jobs(Status::Suspended)) suspended.push_back(job->id);
  tell(event::Resume{suspended, system_principal()});
}

void World::act(const Act& act) {
  const Principal root = system_principal();
  const auto last = state_.next_id().value - 1;
  const JobId any(last == 0 ? 1 : 1 + static_cast<std::uint64_t>(act.which) % last);
  switch (act.kind) {
    case Act::Kind::Submit: {
      JobSpec spec = spec_of(act, now_.wall);
      if (act.after > 0 && last >= static_cast<std::uint64_t>(act.after)) {
        spec.dependencies.jobs = {JobId(last + 1 - static_cast<std::uint64_t>(act.after))};
        spec.dependencies.auto_cancel = act.which % 2 == 0;
        spec.dependencies.mode = act.which % 3 == 0 ? DependencyMode::Any : DependencyMode::All;
      }
      event::Submit submit{{spec}, root};
      if (act.tasks > 0) {
        if (act.which % 2 == 0) submit.specs.front().name = "exp";
        submit.tasks = {TaskRange{.first = 8, .count = static_cast<std::uint64_t>(act.tasks)}};
      }
      return tell(submit);
    }
    case Act::Kind::End:
      return end_one(act.which);
    case Act::Kind::Wait:
      return pass(minutes(1 + act.which * 20));
    case Act::Kind::Cancel:
      return tell(event::Cancel{{any}, root, 0});
    case Act::Kind::Raise: {
      event::Update update{{any}, root, {}};
      update.changes.set(&JobSpec::priority, act.priority);
      return tell(update);
    }
    case Act::Kind::Update: {
      event::Update update{{any}, root, {}};
      update.changes.set(&JobSpec::time_limit, std::chrono::seconds(minutes(1 + act.limit)));
      update.changes.set(&JobSpec::max_concurrent, act.group);
      return tell(update);
    }
    case Act::Kind::Hold:
      return tell(event::Hold{{any}, root});
    case Act::Kind::Release: {
      std::optional<WallTime> at;
      if (act.begin > 0) at = now_.wall + minutes(act.begin);
      return tell(event::Release{{any}, root, at});
    }
    case Act::Kind::Suspend:
      return tell(event::Suspend{{any}, root});
    case Act::Kind::Resume:
      return tell(event::Resume{{any}, root});
    case Act::Kind::Launches:
      launches_ = act.which % 6;
      return;
    case Act::Kind::Reports:
      withheld_ = !withheld_;
      return tell(event::Tick{});
    case Act::Kind::Clock:
      now_.wall += act.which % 2 == 0 ? minutes(-7 * act.which) : 40 * 24h;
      return tell(event::Tick{});
    case Act::Kind::Node:
      return change_nodes(act.which);
    case Act::Kind::Drain: {
      gflow::Drain what{.node = fmt::format("n{}", act.which % kNodes), .reason = "fan"};
      if (act.gpus < kGpus) what.gpu = act.gpus;
      return tell(event::Drain{what, act.which >= 10, root});
    }
    case Act::Kind::Configure:
      return configure(act.which);
    case Act::Kind::Idle:
      return idle(act.which);
    case Act::Kind::Want:
      return want(act.which);
    case Act::Kind::Move:
      return move(act);
  }
}

void World::move(const Act& act) {
  const auto running = jobs(Status::Running);
  if (running.empty()) return;
  const JobId id = running[static_cast<std::size_t>(act.which) % running.size()]->id;
  const auto to = act.gpus < kGpus ? std::optional(act.gpus) : std::nullopt;
  tell(event::Move{id, to, true, system_principal()});
}

void World::idle(int which) {
  const auto at = machines_.find(fmt::format("n{}", which % kNodes));
  if (at == machines_.end()) return;
  for (Device& device : at->second.devices) {
    device.utilization_percent = which % 5 == 0 ? 50 : 0;
  }
  tell(event::NodesChanged{{at->second}});
}

void World::want(int which) {
  std::vector<JobId> lenders;
  for (const Job* job : jobs(Status::Running)) {
    if (std::get<Running>(job->state).lends) lenders.push_back(job->id);
  }
  if (lenders.empty()) return;
  const JobId id = lenders[static_cast<std::size_t>(which) % lenders.size()];
  tell(event::GpuWanted{id, attempt_of(*state_.find(id))->number});
}

void World::change_nodes(int which) {
  const std::string name = fmt::format("n{}", which % kNodes);
  switch (which / kNodes % 4) {
    case 0:
      if (!machines_.contains(name)) return;
      silent_[name] = "no answer";
      return tell(event::NodeUnreachable{name, "no answer"});
    case 1:
      machines_.erase(name);
      silent_.erase(name);
      return tell(event::NodeRemoved{name, "sold"});
    default:
      silent_.erase(name);
      machines_[name] = machine(name);
      if (which / kNodes % 4 == 2) machines_[name].devices.pop_back();
      return tell(event::NodesChanged{{machines_[name]}});
  }
}

void World::configure(int which) {
  policy_.preempt = which % 5 != 0;
  policy_.preemption.quantum = which % 3 == 0 ? 60s : 600s;
  policy_.preemption.hysteresis = which % 3 == 1 ? 100s : 60'000s;
  policy_.placement = which % 4 == 0 ? "pack" : "";
  policy_.lend_idle_after = which % 3 == 2 ? 0s : 1800s;
  tell(event::Configure{policy_});
}

Event World::answer_to_launch(const LaunchOrder& order) const {
  Outcome outcome;
  switch (launches_) {
    case 1:
      outcome.reason = EndReason::LaunchFailed;
      outcome.message = "no such program";
      outcome.failure.kind = FailureKind::Job;
      break;
    case 2:
    case 3:
    case 4:
      outcome.reason = EndReason::NotStarted;
      outcome.message = "no space left";
      outcome.failure.kind = launches_ == 2   ? FailureKind::Node
                             : launches_ == 3 ? FailureKind::Passing
                                              : FailureKind::Unknown;
      break;
    case 5:
      return event::AttemptRevoked{order.job, order.attempt};
    default:
      return event::AttemptStarted{order.job, order.attempt, 1, order.watches};
  }
  return event::AttemptEnded{order.job, order.attempt, outcome};
}

void World::tell(const Event& event) {
  take(step(state_, event, now_));
  int answered = 0;
  while (!reports_.empty() && !withheld_) {
    // Nobody stops and starts for ever; and what is taken back at once is only when people ask.
    if (++answered > 200) throw std::logic_error("the runner is never left alone");
    if (launches_ == 5 && answered > 20) launches_ = 0;
    const Event report = reports_.front();
    reports_.erase(reports_.begin());
    deliver(report);
    take(step(state_, report, now_));
  }
}

/// What the runner is about to tell is known to it whatever becomes of the daemon.
void World::deliver(const Event& report) {
  if (const auto* parking = std::get_if<event::ParkingChanged>(&report)) {
    const std::pair attempt(parking->job, parking->attempt);
    if (parked_.contains(attempt)) parked_[attempt] = parking->parked;
  } else if (const auto* started = std::get_if<event::AttemptStarted>(&report)) {
    if (started->watches) watching_.insert({started->job, started->attempt});
  } else if (const auto* ended = std::get_if<event::AttemptEnded>(&report)) {
    parked_.erase({ended->job, ended->attempt});
    watching_.erase({ended->job, ended->attempt});
  }
}

/// Some jobs have what the driver cannot take away.
void World::halt(const effect::Suspend& suspend) {
  const auto* running = std::get_if<Running>(&state_.find(suspend.job)->state);
  if (running == nullptr || running->parked.how != Parking::Begun) return;
  const bool can_be = suspend.job.value % 5 != 4;
  parked_[{suspend.job, suspend.attempt}] = running->parked;
  reports_.emplace_back(
      event::ParkingChanged{suspend.job,
                            suspend.attempt,
                            can_be ? ParkedMemory{.how = Parking::Parked, .memory = Memory::gib(1)}
                                   : ParkedMemory{.refused = "it uses managed memory"}});
}

/// Some of them come there.
void World::arrive(const effect::Move& move) {
  const bool comes = move.job.value % 3 != 2;
  reports_.emplace_back(
      event::MoveEnded{move.job, move.attempt, comes ? "" : "the driver cannot bring it there"});
}

void World::go_on(const effect::Resume& resume) {
  const auto at = parked_.find({resume.job, resume.attempt});
  if (at == parked_.end() || at->second.how == Parking::None) return;
  at->second.how = Parking::Begun;
  reports_.emplace_back(event::ParkingChanged{resume.job, resume.attempt, {}});
}

void World::take(const std::vector<Effect>& effects) {
  for (const Effect& effect : effects) save(effect);
  for (const Effect& effect : effects) {
    if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
      reports_.push_back(answer_to_launch(*launch->order));
    } else if (const auto* suspend = std::get_if<effect::Suspend>(&effect)) {
      halt(*suspend);
    } else if (const auto* resume = std::get_if<effect::Resume>(&effect)) {
      go_on(*resume);
    } else if (const auto* move = std::get_if<effect::Move>(&effect)) {
      arrive(*move);
    } else if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) {
      const Job& job = *state_.find(stop->job);
      const auto* running = std::get_if<Running>(&job.state);
      const auto& why = running != nullptr ? running->stop : std::get<Starting>(job.state).stop;
      Outcome outcome = outcome_of(why->reason);
      outcome.run_time = run_time_of(job, now_.mono);
      reports_.emplace_back(event::AttemptEnded{stop->job, stop->attempt, outcome});
    } else if (const auto* answer = std::get_if<effect::Answer>(&effect)) {
      refused_ = answer->jobs ? "" : answer->jobs.error().message;
    }
  }
}

void World::save(const Effect& effect) {
  if (const auto* saved = std::get_if<effect::Save>(&effect)) {
    if (const Job* job = state_.find(saved->job)) {
      saved_[saved->job] = *job;
      // Not stored.
      if (auto* ended = std::get_if<Ended>(&saved_[saved->job].state)) ended->outcome.failure = {};
      if (auto* runs = std::get_if<Running>(&saved_[saved->job].state)) {
        runs->parked = {};
        runs->watches = false;
        runs->left.reset();
      }
    }
  } else if (const auto* added = std::get_if<effect::SaveRange>(&effect)) {
    for (std::uint64_t i = 0; i < added->range->count; ++i) {
      saved_[added->range->id(i)] = added->range->at(i);
    }
  } else if (const auto* forget = std::get_if<effect::Forget>(&effect)) {
    saved_.erase(forget->job);
  } else if (std::holds_alternative<effect::SaveDrains>(effect)) {
    drains_ = state_.drains();
  } else if (std::holds_alternative<effect::SaveHealth>(effect)) {
    unhealthy_ = state_.unhealthy();
  }
}

void World::pass(std::chrono::milliseconds time) {
  now_.mono += time;
  now_.wall += time;
  tell(event::Tick{});
}

void World::end_one(int which) {
  const auto running = jobs(Status::Running);
  if (running.empty()) return;
  const Job& job = *running[static_cast<std::size_t>(which) % running.size()];
  Outcome outcome = outcome_of(which % 7 == 6 ? EndReason::SupervisorDied : EndReason::Exited);
  outcome.exit_code = which % 5 == 4 ? 1 : 0;
  outcome.run_time = run_time_of(job, now_.mono);
  tell(event::AttemptEnded{job.id, job.attempts, outcome});
}

std::vector<const Job*> World::jobs(Status status) const {
  return state_.list({.statuses = {status}, .most = 100'000});
}

std::string World::held_twice() const {
  std::map<std::pair<std::string, int>, std::pair<int, std::int64_t>> held;
  std::map<std::string, std::int64_t> host;
  for (const Job* job : state_.list({.most = 100'000})) {
    if (!is_active(*job)) continue;
    const std::vector<Allocation> parts = allocations_of(*attempt_of(*job));
    const auto wanted = static_cast<std::size_t>(job->spec.request.nodes);
    if (parts.size() != wanted) return "a gang is not whole";
    const auto* running = std::get_if<Running>(&job->state);
    const bool suspended = running != nullptr && (running->suspended || running->lends);
    for (const Allocation& part : parts) {
      for (const int gpu : part.gpus) {
        auto& [compute, memory] = held[{part.node, gpu}];
        const Request& asked = job->spec.request;
        const bool may_have_all =
            suspended && asked.gpu_memory == Memory{} && asked.mode == GpuMode::Whole;
        const Parking parking = running != nullptr ? running->parked.how : Parking::None;
        if (parking != Parking::Parked) {
          memory += may_have_all ? kGpuMemory.bytes : asked.gpu_memory.bytes;
        }
        if (parking != Parking::None) host[part.node] += asked.gpu_memory.bytes;
        if (host[part.node] > kHostMemory.bytes) return "more is parked than the host has room for";
        if (memory > kGpuMemory.bytes) return "more memory is held than there is";
        if (!suspended) compute += asked.share.parts;
        if (compute > Share::kWholeParts) return "more compute is held than there is";
      }
    }
  }
  return "";
}

std::string World::told() const {
  std::string text;
  for (const Job* job : state_.list({.most = 100'000})) {
    text += fmt::format("{} {} attempts {} retries {} preempted {} served {}",
                        job->id.value,
                        status_name(status_of(*job)),
                        job->attempts,
                        job->retries,
                        job->preemptions,
                        job->served.count());
    if (const Attempt* attempt = attempt_of(*job)) {
      for (const Allocation& part : allocations_of(*attempt)) {
        text += fmt::format(" {}:{}", part.node, fmt::join(part.gpus, ","));
      }
    }
    text += " " + reason_text(state_.blockers(job->id, now_)) + "\n";
  }
  for (const NodeHealth& health : state_.unhealthy()) {
    text += fmt::format("{} failed {} times: {}, until {}, by {}\n",
                        health.node,
                        health.failures,
                        health.reason,
                        health.retry_at.count(),
                        health.tried.size());
  }
  for (const gflow::Drain& drain : state_.drains()) {
    text += fmt::format("drained {} {}\n", drain.node, drain.gpu.value_or(-1));
  }
  return text;
}

}  // namespace gflow::engine::world
