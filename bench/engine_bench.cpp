// SPDX-License-Identifier: Apache-2.0
// The engine alone: how fast it takes submissions, decides, and finds nothing to do in a long
// queue.
#include <fmt/format.h>

#include <chrono>

#include "engine/step.h"

namespace {

using namespace gflow;
using Clock = std::chrono::steady_clock;

constexpr Now kNow{WallTime(std::chrono::hours(490'000)), MonoTime(std::chrono::hours(1))};

double seconds_of(auto work) {
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
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

}  // namespace

int main() {
  fmt::print("{:>9} {:>14} {:>18} {:>20} {:>18}\n",
             "queued",
             "submitted/s",
             "empty pass, us",
             "end and start, us",
             "page of 100, us");
  for (const std::uint64_t jobs : {1'000U, 100'000U, 1'000'000U}) measure(jobs);
  return 0;
}
