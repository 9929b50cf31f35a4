// SPDX-License-Identifier: Apache-2.0
// What must hold whatever people do: found by rapidcheck, which also shortens what breaks it.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <vector>

#include "engine/step.h"

namespace gflow::engine {
namespace {

using namespace std::chrono_literals;
using std::chrono::minutes;

constexpr int kNodes = 2;
constexpr int kGpus = 4;  // on each
constexpr Memory kGpuMemory = Memory::gib(16);

/// Something a person or time does.
struct Act {
  enum class Kind { Submit, End, Wait, Cancel, Raise };
  Kind kind = Kind::Submit;
  int which = 0;  ///< of the running jobs, or of all
  int gpus = 0;
  int nodes = 1;
  int percent = 100;  ///< of a GPU; below 100 only where gpus is 1
  int gigabytes = 0;  ///< of GPU memory
  int priority = 10;
  int limit = 0;  ///< minutes; 0 is none
  Preemption preemption = Preemption::None;

  friend void showValue(const Act& act, std::ostream& out) {
    out << static_cast<int>(act.kind) << '#' << act.which << ' ' << act.nodes << 'x' << act.gpus
        << " GPUs " << act.percent << "% " << act.gigabytes << "G priority " << act.priority
        << " limit " << act.limit << " preemption " << static_cast<int>(act.preemption);
  }
};

rc::Gen<Act> any_act() {
  using Kind = Act::Kind;
  return rc::gen::build<Act>(
      rc::gen::set(&Act::kind,
                   rc::gen::weightedElement<Kind>({{8, Kind::Submit},
                                                   {6, Kind::End},
                                                   {3, Kind::Wait},
                                                   {1, Kind::Cancel},
                                                   {1, Kind::Raise}})),
      rc::gen::set(&Act::which, rc::gen::inRange(0, 20)),
      rc::gen::set(&Act::gpus, rc::gen::inRange(0, kGpus + 1)),
      rc::gen::set(&Act::nodes, rc::gen::weightedElement<int>({{6, 1}, {1, kNodes}})),
      rc::gen::set(&Act::percent, rc::gen::element(100, 50, 30)),
      rc::gen::set(&Act::gigabytes, rc::gen::inRange(0, 9)),
      rc::gen::set(&Act::priority, rc::gen::weightedElement<int>({{4, 10}, {1, 5}, {1, 20}})),
      rc::gen::set(&Act::limit, rc::gen::element(0, 30, 600)),
      rc::gen::set(&Act::preemption,
                   rc::gen::element(Preemption::None, Preemption::Requeue, Preemption::Suspend)));
}

JobSpec spec_of(const Act& act) {
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
  return spec;
}

/// The engine and a runner that does as it is told, at once.
class World {
 public:
  explicit World(Order order)
      : World(order, {}, JobId(1), {WallTime(10'000h), MonoTime(10'000h)}) {}
  World(Order order, const std::vector<Job>& jobs, JobId next_id, Now now)
      : order_(order), state_(policy_of(order), "boot"), now_(now) {
    for (const Job& job : jobs) state_.restore(job);
    state_.restored(next_id);
    Machine machine;
    machine.name = "n0";
    machine.cpus = 64;
    machine.memory = Memory::gib(256);
    for (int i = 0; i < kGpus; ++i) {
      Device device;
      device.index = i;
      device.vendor = "nvidia";
      device.model = "NVIDIA T4";
      device.memory_total = kGpuMemory;
      machine.devices.push_back(device);
    }
    Machine second = machine;
    second.name = "n1";
    tell(event::NodesChanged{{machine, second}});
  }
  /// What the next daemon makes of what this one saved.
  [[nodiscard]] World restarted() const {
    std::vector<Job> saved;
    for (const Job* job : state_.list({.most = 100'000})) saved.push_back(*job);
    return {order_, saved, state_.next_id(), now_};
  }

  void act(const Act& act) {
    const Principal root = system_principal();
    const auto last = state_.next_id().value - 1;
    const JobId any(last == 0 ? 1 : 1 + static_cast<std::uint64_t>(act.which) % last);
    switch (act.kind) {
      case Act::Kind::Submit:
        return tell(event::Submit{{spec_of(act)}, system_principal()});
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
    }
  }

  void tell(const Event& event) {
    take(step(state_, event, now_));
    for (int reports = 0; !reports_.empty(); ++reports) {
      RC_ASSERT(reports < 60);  // nobody stops and starts for ever
      const Event report = reports_.front();
      reports_.erase(reports_.begin());
      take(step(state_, report, now_));
    }
  }
  void pass(std::chrono::milliseconds time) {
    now_.mono += time;
    now_.wall += time;
    tell(event::Tick{});
  }
  /// Ends one of those who run and do not stand still; nothing if there is none.
  void end_one(int which) {
    const auto running = jobs(Status::Running);
    if (running.empty()) return;
    end(running[static_cast<std::size_t>(which) % running.size()]->id, EndReason::Exited);
  }

  [[nodiscard]] std::vector<const Job*> jobs(Status status) const {
    return state_.list({.statuses = {status}});
  }
  [[nodiscard]] const State& state() const { return state_; }
  [[nodiscard]] Now now() const { return now_; }

  /// What jobs hold of each device, counted here and not by the ledger. The first trouble, or "".
  [[nodiscard]] std::string held_twice() const {
    std::map<std::pair<std::string, int>, std::pair<int, std::int64_t>> held;
    std::set<std::pair<std::string, int>> whole;
    for (const Job* job : state_.list({})) {
      if (!is_active(*job)) continue;
      const Attempt& attempt = *attempt_of(*job);
      std::vector<Allocation> parts = attempt.peers;
      parts.push_back(attempt.allocation);
      const auto wanted = static_cast<std::size_t>(job->spec.request.nodes);
      if (parts.size() != wanted) return "a gang is not whole";
      const bool stands = status_of(*job) == Status::Suspended;
      for (const Allocation& part : parts) {
        for (const int gpu : part.gpus) {
          auto& [compute, memory] = held[{part.node, gpu}];
          memory += job->spec.request.gpu_memory.bytes;
          if (memory > kGpuMemory.bytes) return "more memory is held than there is";
          if (!stands) compute += job->spec.request.share.parts;
          if (compute > Share::kWholeParts) return "more compute is held than there is";
        }
      }
    }
    return "";
  }

 private:
  static Policy policy_of(Order order) {
    Policy policy;
    policy.order.order = order;
    return policy;
  }

  void take(const std::vector<Effect>& effects) {
    for (const Effect& effect : effects) {
      if (const auto* launch = std::get_if<effect::Launch>(&effect)) {
        reports_.emplace_back(event::AttemptStarted{launch->order->job, launch->order->attempt, 1});
      } else if (const auto* stop = std::get_if<effect::StopAttempt>(&effect)) {
        const Job& job = *state_.find(stop->job);
        const auto* running = std::get_if<Running>(&job.state);
        const auto& why = running != nullptr ? running->stop : std::get<Starting>(job.state).stop;
        Outcome outcome;
        outcome.reason = why->reason;
        reports_.emplace_back(event::AttemptEnded{stop->job, stop->attempt, outcome});
      }
    }
  }
  void end(JobId id, EndReason reason) {
    const Job& job = *state_.find(id);
    Outcome outcome;
    outcome.reason = reason;
    outcome.run_time = now_.mono - attempt_of(job)->started_mono;
    tell(event::AttemptEnded{id, job.attempts, outcome});
  }

  Order order_;
  State state_;
  Now now_;
  std::vector<Event> reports_;
};

Order any_order() { return *rc::gen::element(Order::Learned, Order::Submission); }

RC_GTEST_PROP(EngineProperty, NothingIsHeldTwiceAndNothingIsForgotten, ()) {
  World world(any_order());
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_act())) {
    world.act(act);
    RC_ASSERT(world.held_twice() == "");
    RC_ASSERT(world.state().check() == "");
  }
  // Everyone can run here, so once nothing new comes everyone does.
  for (std::uint64_t ends = 0; !world.jobs(Status::Running).empty(); ++ends) {
    RC_ASSERT(ends < 10 * world.state().next_id().value);
    world.pass(1h);
    world.end_one(0);
  }
  RC_ASSERT(world.jobs(Status::Queued).empty());
  RC_ASSERT(world.jobs(Status::Suspended).empty());
}

/// A stream of small jobs that never ends, of whatever kind, does not keep a big one from starting.
RC_GTEST_PROP(EngineProperty, NobodyStarves, ()) {
  const Order order = any_order();
  Act small = *any_act();
  Act big = *any_act();
  small.gpus = *rc::gen::inRange(1, kGpus);
  small.nodes = 1;
  big.gpus = kGpus;
  big.nodes = *rc::gen::element(1, kNodes);
  small.priority = big.priority = kDefaultPriority;
  small.preemption = big.preemption = *rc::gen::element(Preemption::None, Preemption::Requeue);
  const int length = *rc::gen::element(60, 500);  // minutes of a small job

  World world(order);
  for (int i = 0; i < 4 * kNodes * kGpus; ++i)
    world.tell(event::Submit{{spec_of(small)}, system_principal()});
  const JobId waits = world.state().next_id();
  world.tell(event::Submit{{spec_of(big)}, system_principal()});
  const auto give_up = world.now().wall + 40 * 24h;
  while (status_of(*world.state().find(waits)) == Status::Queued) {
    RC_ASSERT(world.now().wall < give_up);
    world.pass(minutes(length));
    for (std::size_t left = world.jobs(Status::Running).size(); left > 0; --left) {
      world.tell(event::Submit{{spec_of(small)}, system_principal()});
      if (status_of(*world.state().find(waits)) != Status::Queued) break;
      world.end_one(0);
    }
  }
}

/// Jobs alike in owner, request, program and limit start in the order of submission, whatever is
/// learned meanwhile.
RC_GTEST_PROP(EngineProperty, JobsAlikeAreFirstInFirstOut, ()) {
  World world(any_order());
  std::vector<Act> kinds;
  for (int i = 0; i < 3; ++i) {
    kinds.push_back(*any_act());
    kinds.back().kind = Act::Kind::Submit;
    kinds.back().gpus = *rc::gen::inRange(1, kGpus + 1);
  }
  const auto acts = *rc::gen::container<std::vector<Act>>(any_act());
  std::map<int, std::vector<JobId>> alike;
  for (const Act& act : acts) {
    if (act.kind == Act::Kind::Raise) continue;
    const int kind = act.which % 3;
    const JobId next = world.state().next_id();
    world.act(act.kind == Act::Kind::Submit ? kinds[static_cast<std::size_t>(kind)] : act);
    if (world.state().find(next) != nullptr) alike[kind].push_back(next);
    for (const auto& [which, jobs] : alike) {
      bool waits = false;
      for (const JobId id : jobs) {
        const Job& job = *world.state().find(id);
        const bool started = attempt_of(job) != nullptr && is_active(job);
        RC_ASSERT(!(waits && started && job.attempts == 1));
        waits = waits || (job.attempts == 0 && status_of(job) == Status::Queued);
      }
    }
  }
}

/// What a daemon that was killed saved gives the same decisions as the one that goes on.
/// Where jobs can be stopped it is not so yet: for whom room was made lately is not saved.
RC_GTEST_PROP(EngineProperty, ARestartChangesNothing, ()) {
  World world(any_order());
  for (Act act : *rc::gen::container<std::vector<Act>>(any_act())) {
    act.nodes = 1;
    act.preemption = Preemption::None;
    world.pass(1ms);
    World restarted = world.restarted();
    RC_ASSERT(restarted.state().check() == "");
    world.act(act);
    restarted.act(act);
    const auto kept = world.state().list({.most = 100'000});
    const auto rebuilt = restarted.state().list({.most = 100'000});
    RC_ASSERT(std::ranges::equal(kept, rebuilt, [](const Job* a, const Job* b) {
      const Attempt* one = attempt_of(*a);
      const Attempt* other = attempt_of(*b);
      const bool there = (one == nullptr) == (other == nullptr) &&
                         (one == nullptr || one->allocation == other->allocation);
      return a->id == b->id && status_of(*a) == status_of(*b) && a->attempts == b->attempts &&
             there;
    }));
  }
}

RC_GTEST_PROP(EngineProperty, TheSameActsGiveTheSameDecisions, ()) {
  const Order order = any_order();
  World one(order);
  World other(order);
  for (const Act& act : *rc::gen::container<std::vector<Act>>(any_act())) {
    one.act(act);
    other.act(act);
    const auto a = one.state().list({});
    const auto b = other.state().list({});
    RC_ASSERT(std::ranges::equal(a, b, [](const Job* x, const Job* y) { return *x == *y; }));
  }
}

}  // namespace
}  // namespace gflow::engine
