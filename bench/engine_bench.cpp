// SPDX-License-Identifier: Apache-2.0
// The engine alone: how fast it takes submissions, decides, and finds nothing to do in a long
// queue.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "engine/step.h"

namespace {

using namespace gflow;
constexpr Now kNow{WallTime(std::chrono::hours(490'000)), MonoTime(std::chrono::hours(1))};

/// Of processor time: whatever else the machine does.
double seconds_of(auto work) {
  const std::clock_t start = std::clock();
  work();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

Machine machine_of(int gpus) {
  Machine machine;
  machine.name = "n1";
  machine.cpus = 1024;
  machine.memory = Memory::gib(4096);
  for (int i = 0; i < gpus; ++i) {
    Device device;
    device.index = i;
    machine.devices.push_back(device);
  }
  return machine;
}

/// Few kinds of requests, as one lab has: 40 shapes.
JobSpec spec_of(std::uint64_t n) {
  JobSpec spec;
  spec.name = fmt::format("job-{}", n);
  spec.user = {static_cast<std::uint32_t>(1000 + n % 20), fmt::format("user{}", n % 20)};
  spec.request.gpus = 1 + static_cast<int>(n % 8);
  spec.priority = static_cast<int>(n * 7 % 256);
  if (n % 5 != 0) spec.time_limit = std::chrono::hours(1 + static_cast<int>(n % 5));
  return spec;
}

engine::State filled(std::uint64_t jobs) {
  engine::State state(engine::Policy{}, "boot");
  state.restored(JobId(1));
  (void)engine::step(state, engine::event::NodesChanged{{machine_of(8)}}, kNow);
  (void)engine::step(
      state, engine::event::Submit{{spec_of(7)}, system_principal()}, kNow);  // takes all eight
  for (std::uint64_t n = 0; n < jobs; n += 1000) {
    engine::event::Submit batch{{}, system_principal()};
    for (std::uint64_t i = 0; i < 1000; ++i) batch.specs.push_back(spec_of(n + i));
    (void)engine::step(state, batch, kNow);
  }
  return state;
}

void measure(std::uint64_t jobs) {
  engine::State state(engine::Policy{}, "boot");
  const double fill = seconds_of([&] { state = filled(jobs); });
  constexpr int kPasses = 1000;
  const double idle = seconds_of([&] {
    for (int i = 0; i < kPasses; ++i) (void)engine::step(state, engine::event::Tick{}, kNow);
  });
  constexpr int kTurns = 20'000;
  JobId running(1);
  const double turns = seconds_of([&] {
    for (int i = 0; i < kTurns; ++i) {
      const Job* job = state.find(running);
      const engine::event::AttemptEnded end{running, job->attempts, Outcome{}};
      for (const engine::Effect& effect : engine::step(state, end, kNow)) {
        if (const auto* launch = std::get_if<engine::effect::Launch>(&effect))
          running = launch->order->job;
      }
    }
  });
  const double list = seconds_of([&] {
    const JobQuery query{.statuses = {Status::Queued}, .after = JobId(jobs / 2), .most = 100};
    for (int i = 0; i < kPasses; ++i) (void)state.list(query);
  });
  fmt::print("{:>9} {:>14.0f} {:>18.2f} {:>20.2f} {:>18.2f}\n",
             jobs,
             static_cast<double>(jobs) / fill,
             idle / kPasses * 1e6,
             turns / kTurns * 1e6,
             list / kPasses * 1e6);
}

/// A request that no other of so many kinds makes.
JobSpec spec_of_kind(std::uint64_t n, std::uint64_t kinds) {
  JobSpec spec = spec_of(n);
  spec.priority = kDefaultPriority;
  spec.request.memory = Memory::mib(static_cast<std::int64_t>(1 + n % kinds));
  return spec;
}

/// The daemon learns and forgets as time goes by; here it goes by between any two events.
Now after(int events) {
  return {kNow.wall + std::chrono::milliseconds(events),
          kNow.mono + std::chrono::milliseconds(events)};
}

void measure_kinds(std::uint64_t kinds) {
  engine::State state = filled(0);
  for (std::uint64_t n = 0; n < kinds; n += 1000) {
    engine::event::Submit batch{{}, system_principal()};
    for (std::uint64_t i = n; i < std::min(n + 1000, kinds); ++i) {
      batch.specs.push_back(spec_of_kind(i, kinds));
    }
    (void)engine::step(state, batch, kNow);
  }
  constexpr int kTimes = 300;
  int events = 0;
  const auto each = [&](auto event_of) {
    return 1e6 / kTimes * seconds_of([&] {
             for (int i = 0; i < kTimes; ++i) {
               (void)engine::step(state, event_of(i), after(++events));
             }
           });
  };
  const double submitted = each([&](int i) {
    const auto n = static_cast<std::uint64_t>(i) * 31;
    return engine::event::Submit{{spec_of_kind(n, kinds)}, system_principal()};
  });
  const double idle = each([](int) { return engine::event::Tick{}; });
  const double cancelled = each([&](int i) {
    return engine::event::Cancel{{JobId(state.next_id().value - 1 - static_cast<unsigned>(i))},
                                 system_principal()};
  });
  // One ends, and what has room then starts: with one GPU free, the next job of one.
  std::vector<std::pair<JobId, int>> running = {{JobId(1), 1}};
  const double turns =
      1e6 / kTimes * seconds_of([&] {
        for (int i = 0; i < kTimes; ++i) {
          const auto [id, attempt] = running.back();
          running.pop_back();
          const engine::event::AttemptEnded end{id, attempt, Outcome{}};
          for (const engine::Effect& effect : engine::step(state, end, after(++events))) {
            const auto* launch = std::get_if<engine::effect::Launch>(&effect);
            if (launch != nullptr) running.emplace_back(launch->order->job, launch->order->attempt);
          }
        }
      });
  fmt::print(
      "{:>9} {:>14.1f} {:>18.1f} {:>20.1f} {:>18.1f}\n", kinds, submitted, idle, turns, cancelled);
}

/// One job depends on many, of which most are cancelled at once.
void measure_cancelling() {
  engine::State state = filled(0);
  constexpr std::uint64_t kJobs = 5'000;
  constexpr std::size_t kCancelled = 4'000;
  engine::event::Submit all{{}, system_principal()};
  for (std::uint64_t n = 0; n < kJobs; ++n) all.specs.push_back(spec_of_kind(n, 1));
  JobSpec last = spec_of_kind(0, 1);
  last.dependencies.mode = DependencyMode::Any;
  const std::uint64_t first = state.next_id().value;
  for (std::uint64_t n = 0; n < kJobs; ++n) last.dependencies.jobs.emplace_back(first + n);
  (void)engine::step(state, all, kNow);
  (void)engine::step(state, engine::event::Submit{{last}, system_principal()}, kNow);
  engine::event::Cancel cancel{last.dependencies.jobs, system_principal()};
  cancel.jobs.resize(kCancelled);
  const double took = seconds_of([&] { (void)engine::step(state, cancel, kNow); });
  fmt::print(
      "\ncancel of {} of {} jobs on which one depends: {:.1f} ms\n", kCancelled, kJobs, took * 1e3);
}

/// A gang of whole nodes comes to a cluster of 5,000 of which every third is in use: what the
/// decision costs where all have to be in one block, or are to be in few racks, and without levels.
double gang_seconds(const engine::Nearness& near) {
  constexpr int kNodes = 5'000;
  constexpr int kNodesOfRack = 32;
  constexpr int kRacksOfBlock = 40;
  constexpr std::size_t kJobs = 512;
  constexpr engine::GangNumber kGang = 1;
  engine::Policy policy;
  policy.order.order = engine::Order::Submission;
  engine::State state(policy, "boot");
  state.restored(JobId(1));
  engine::event::NodesChanged nodes;
  for (int n = 0; n < kNodes; ++n) {
    Machine machine = machine_of(8);
    machine.name = fmt::format("n{}", n);
    machine.labels = {{"block", fmt::format("{}", n / kNodesOfRack / kRacksOfBlock)},
                      {"rack", fmt::format("{}", n / kNodesOfRack)}};
    nodes.nodes.push_back({std::move(machine)});
  }
  (void)engine::step(state, nodes, kNow);
  JobSpec spec = spec_of_kind(0, 1);
  spec.request.gpus = 8;
  engine::event::Submit others{std::vector<JobSpec>(kNodes / 3, spec), system_principal()};
  (void)engine::step(state, others, kNow);
  state.put_gang(kGang, kJobs, near);
  const engine::event::Submit one{{spec}, system_principal()};
  return seconds_of([&] {
    for (std::size_t i = 0; i < kJobs; ++i) {
      state.join_gang(state.next_id(), kGang);
      (void)engine::step(state, one, kNow);
    }
  });
}

void measure_gangs() {
  const double plain = gang_seconds({});
  fmt::print("\ngang of 512 on 5,000 nodes: {:.1f} ms without levels", plain * 1e3);
  const std::vector<std::string> levels = {"block", "rack"};
  const std::vector<std::pair<const char*, engine::Nearness>> rows = {
      {"one block required", {levels, 1, 0}},
      {"one rack preferred", {levels, 0, 2}},
      {"nothing said", {levels, 0, 0}}};
  for (const auto& [name, near] : rows) {
    fmt::print("; {}: {:.2f} times that", name, gang_seconds(near) / plain);
  }
  fmt::print("\n");
}

}  // namespace

int main() {
  fmt::print("{:>9} {:>14} {:>18} {:>20} {:>18}\n",
             "queued",
             "submitted/s",
             "empty pass, us",
             "end and start, us",
             "page of 100, us");
  for (const std::uint64_t jobs : {1'000U, 100'000U, 1'000'000U}) measure(jobs);
  fmt::print("\n{:>9} {:>14} {:>18} {:>20} {:>18}\n",
             "kinds",
             "submission, us",
             "empty pass, us",
             "end and start, us",
             "cancel of one, us");
  for (const std::uint64_t kinds : {1U, 1'000U, 5'000U, 10'000U}) measure_kinds(kinds);
  measure_cancelling();
  measure_gangs();
  return 0;
}
