// SPDX-License-Identifier: Apache-2.0
// A snapshot replays to the very decisions: the live engine, after whatever life, and one made from
// what the server wrote of it, told the same from then on, decide the same.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/blocker.h"
#include "engine/step.h"
#include "lab/snapshot.h"
#include "server/snapshot.h"

namespace gflow {
namespace {

using namespace std::chrono_literals;
using engine::State;
namespace event = engine::event;

constexpr std::size_t kAllEnded = 4000;
constexpr Now kBegin{WallTime(std::chrono::sys_days(std::chrono::year(2026) / 3 / 1)),
                     MonoTime(std::chrono::hours(100'000))};

/// A life of people, jobs and nodes, drawn from a seed.
class Life {
 public:
  explicit Life(unsigned seed) : random_(seed), state_(policy(), "boot"), now_(kBegin) {
    state_.restored(JobId(1));
    tell(event::NodesChanged{{machine("n0"), machine("n1")}});
  }

  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool one_in(int n) { return below(n) == 0; }

  /// Something happens; the runner answers launches and stops, most of the time.
  void happen() {
    now_.mono += std::chrono::milliseconds(below(900'000));
    now_.wall += std::chrono::milliseconds(below(900'000));
    if (one_in(20)) now_.wall += std::chrono::hours(below(200) - 100);
    tell(any_event());
    if (!one_in(6)) answer();
  }

  /// The same for the live engine and a replay.
  [[nodiscard]] event::AttemptEnded end_of(const Job& job) {
    Outcome outcome;
    outcome.exit_code = one_in(4) ? 1 : 0;
    outcome.run_time = run_time_of(job, now_.mono);
    const auto* running = std::get_if<Running>(&job.state);
    if (running != nullptr && running->stop) outcome.reason = running->stop->reason;
    return {job.id, attempt_of(job)->number, outcome};
  }
  void tell(const engine::Event& event) { (void)engine::step(state_, event, now_); }

  [[nodiscard]] State& state() { return state_; }
  [[nodiscard]] Now now() const { return now_; }

 private:
  engine::Event any_event() {
    const std::vector<const Job*> active = state_.list({.statuses = kActive});
    const JobId any(1 +
                    static_cast<std::uint64_t>(below(static_cast<int>(state_.next_id().value))));
    const std::string node = one_in(2) ? "n0" : "n1";
    switch (below(24)) {
      case 0:
        return event::Hold{{any}, system_principal()};
      case 1:
        return event::Release{{any}, system_principal(), std::nullopt};
      case 2:
        return event::Cancel{{any}, system_principal()};
      case 3:
        return event::NodeUnreachable{node, "no answer"};
      case 4:
      case 5:
        return event::NodesChanged{{machine(node)}};
      case 6:
        return event::Drain{
            {.node = node, .gpu = below(8), .reason = "fan"}, one_in(2), system_principal()};
      case 7:
        fails_ = one_in(2);
        return event::Tick{};
      default:
        break;
    }
    if (active.empty() || !one_in(3)) return event::Submit{{any_spec()}, system_principal()};
    return end_of(*active[static_cast<std::size_t>(below(static_cast<int>(active.size())))]);
  }

  void answer() {
    for (const Job* job : state_.list({.statuses = {Status::Starting}})) {
      if (!fails_) {
        tell(event::AttemptStarted{job->id, attempt_of(*job)->number, 1});
        continue;
      }
      Outcome outcome{.reason = EndReason::NotStarted, .message = "no space"};
      outcome.failure.kind = static_cast<FailureKind>(1 + below(3));
      tell(event::AttemptEnded{job->id, attempt_of(*job)->number, outcome});
    }
    for (const Job* job : state_.list({.statuses = {Status::Completing}})) {
      if (one_in(2)) tell(end_of(*job));
    }
  }

  JobSpec any_spec() {
    static constexpr const char* kPrograms[] = {"python train.py", "python eval.py", "bash"};
    JobSpec spec;
    spec.user = {static_cast<std::uint32_t>(1000 + below(3)), "u"};
    spec.name = "job";
    spec.command = std::string(kPrograms[below(3)]) + " --seed " + std::to_string(below(100));
    spec.request.gpus = 1 + below(4);
    spec.request.gpu_memory = Memory::gib(1 + below(20));
    if (spec.request.gpus == 1 && one_in(2)) {
      spec.request.mode = GpuMode::Fraction;
      spec.request.share = Share::percent(25 + 25 * below(3));
    }
    if (one_in(6)) spec.request.nodes = 2;
    spec.preemption = static_cast<Preemption>(1 + below(3));
    if (one_in(4)) spec.priority = one_in(2) ? 20 : 5;
    if (one_in(2)) spec.time_limit = std::chrono::hours(1 + below(40));
    if (one_in(5)) {
      spec.group = "sweep";
      spec.max_concurrent = 2;
    }
    if (one_in(8)) spec.begin = now_.wall + std::chrono::minutes(below(200));
    if (one_in(5) && state_.next_id().value > 5) {
      spec.dependencies.jobs = {
          JobId(state_.next_id().value - 1 - static_cast<unsigned>(below(4)))};
    }
    spec.requeue = one_in(2);
    spec.max_retries = below(3);
    return spec;
  }

  engine::Policy policy() {
    static constexpr const char* kPlacements[] = {"", "balanced", "pack"};
    engine::Policy policy;
    policy.placement = kPlacements[below(3)];
    policy.placement_options = {.gpu_weight = below(100),
                                .memory_weight = below(100),
                                .cpu_weight = below(100),
                                .fragmentation_weight = below(100)};
    policy.preempt = !one_in(4);
    if (one_in(3)) policy.order.order = engine::Order::Submission;
    return policy;
  }

  Machine machine(std::string name) {
    Machine machine;
    machine.name = std::move(name);
    machine.source = "sim";
    machine.labels = {{"disk", "nvme"}, {"zone", machine.name}};
    machine.cpus = 64;
    machine.memory = Memory::gib(512);
    for (int index = 0; index < 8; ++index) {
      Device device;
      device.index = index;
      device.vendor = "nvidia";
      device.model = "A100";
      device.memory_total = Memory::gib(40);
      if (one_in(4)) {
        device.memory_used = Memory::gib(below(10));
        device.uses = {{static_cast<std::uint64_t>(1 + below(60)), Memory::gib(below(12))}};
      }
      machine.devices.push_back(std::move(device));
    }
    return machine;
  }

  std::mt19937 random_;
  bool fails_ = false;  ///< launches do
  State state_;
  Now now_;
};

/// Where each job that has not ended stands, and why: "7 active 0,3".
std::string standing(const State& state, Now now) {
  std::string text;
  for (const Job* job : state.list({.statuses = kPending | kActive})) {
    // A launch that is under way is answered at once by the simulated runner.
    const bool waits_for_answer = status_of(*job) == Status::Starting;
    text += std::to_string(job->id.value) + " " +
            std::string(waits_for_answer ? "Running" : status_name(status_of(*job)));
    if (is_active(*job)) {
      for (const Allocation& part : allocations_of(*attempt_of(*job))) {
        text += " " + part.node + ":";
        for (const int gpu : part.gpus) text += std::to_string(gpu) + ",";
      }
    }
    // A snapshot is for everybody.
    std::vector<Blocker> blockers = state.blockers(job->id, now);
    for (Blocker& blocker : blockers) blocker = public_part(std::move(blocker));
    text += " " + reason_text(blockers) + "\n";
  }
  return text;
}

class Replay : public testing::TestWithParam<unsigned> {};

TEST_P(Replay, OfASnapshotDecidesAsTheLiveEngine) {
  Life life(GetParam());
  for (int i = 0; i < 200; ++i) life.happen();
  life.tell(event::Tick{});
  const std::string json = api::write(server::snapshot_of(life.state(), life.now(), kAllEnded));
  const auto subject = lab::read_snapshot(json, "test");
  ASSERT_TRUE(subject) << subject.error().message;
  EXPECT_EQ(subject->policy, life.state().policy());
  lab::Simulation replay = lab::simulation_of(*subject, {});
  const auto told = [&](const State& state, MonoTime mono) {
    return standing(state, {life.now().wall, mono});
  };
  const MonoTime lab_now = replay.clock().mono;
  ASSERT_EQ(told(replay.state(), lab_now), told(life.state(), life.now().mono));
  for (int i = 0; i < 60; ++i) {
    const std::vector<const Job*> active = life.state().list({.statuses = kActive});
    if (active.empty()) break;
    const auto chosen = static_cast<std::size_t>(life.below(static_cast<int>(active.size())));
    const event::AttemptEnded end = life.end_of(*active[chosen]);
    life.tell(end);
    replay.tell(end);
    ASSERT_EQ(told(replay.state(), lab_now), told(life.state(), life.now().mono)) << "after " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Replay, testing::Range(1U, 61U));

}  // namespace
}  // namespace gflow
