// SPDX-License-Identifier: Apache-2.0
// Which GPUs of a machine a job gets: what comes of it when many jobs share a machine, and what a
// choice costs, beside go-gpuallocator's algorithm in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>

#include "lab/gpuallocator.h"
#include "lab/rng.h"
#include "lab/topology.h"
#include "os/file.h"
#include "placement/device_set.h"

namespace {

using namespace gflow;
using placement::DeviceSet;
using placement::GpuMask;
using Clock = std::chrono::steady_clock;

constexpr int kQuestions = 20'000;

template <typename T>
T need(Result<T> result) {
  if (result) return std::move(result).value();
  fmt::print(stderr, "topology_bench: {}\n", result.error().message);
  std::exit(1);
}

template <typename Call>
double microseconds(Call call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

struct Times {
  double p50 = 0;
  double p99 = 0;
  double most = 0;
};

Times times_of(std::vector<double> took) {
  std::ranges::sort(took);
  return {took[took.size() / 2], took[took.size() * 99 / 100], took.back()};
}

struct Question {
  GpuMask free = 0;
  int count = 0;
  std::vector<DeviceSet> held;
};

/// Machines in all states: some jobs of 1 to 4 GPUs run, one of any size that fits comes.
std::vector<Question> questions_for(int gpus) {
  lab::Rng random(42);
  std::vector<Question> questions;
  while (questions.size() < kQuestions) {
    Question question{(GpuMask{1} << gpus) - 1, 0, {}};
    for (auto jobs = random.below(static_cast<std::uint32_t>(gpus)); jobs > 0; --jobs) {
      GpuMask set = 0;
      for (auto size = 1 + random.below(4); size > 0; --size) {
        set |= GpuMask{1} << random.below(static_cast<std::uint32_t>(gpus));
      }
      if ((set & ~question.free) != 0) continue;
      question.free &= ~set;
      question.held.emplace_back(set);
    }
    const int free = std::popcount(question.free);
    if (free == 0) continue;
    question.count = 1 + static_cast<int>(random.below(static_cast<std::uint32_t>(free)));
    questions.push_back(std::move(question));
  }
  return questions;
}

void print_times(const lab::WiredMachine& machine) {
  const int gpus = machine.topology.gpus;
  std::optional<placement::DeviceTable> table;
  const double made = microseconds(
      [&] { table.emplace(gpus, machine.topology, placement::DemandProfile::usual()); });
  const lab::GpuAllocator peer(machine.topology);
  std::vector<double> ours;
  std::vector<double> theirs;
  int sum = 0;
  for (const Question& question : questions_for(gpus)) {
    ours.push_back(microseconds([&] {
      sum += table->choose({DeviceSet(question.free), question.count, question.held}).devices[0];
    }));
    if (gpus > 8) continue;
    theirs.push_back(
        microseconds([&] { sum += static_cast<int>(peer.choose(question.free, question.count)); }));
  }
  const Times our = times_of(ours);
  fmt::print("{:<22}{:>9.1f}{:>9.1f}{:>10.1f}{:>11.1f}",
             machine.name,
             our.p50,
             our.p99,
             our.most,
             made / 1000);
  if (!theirs.empty()) {
    const Times their = times_of(theirs);
    fmt::print("{:>14.1f}{:>10.1f}", their.p50, their.p99);
  }
  fmt::print("{}\n", sum < 0 ? "?" : "");
}

/// One choice on an idle machine of 16 GPUs.
void print_peer_at_16(const lab::WiredMachine& machine) {
  const lab::GpuAllocator peer(machine.topology);
  for (const int count : {2, 4, 8}) {
    const double took = microseconds([&] { (void)peer.choose(0xFFFF, count); });
    fmt::print("go-gpuallocator's algorithm, {} of 16 free GPUs: {:.0f} ms\n", count, took / 1000);
  }
}

}  // namespace

int main() {
  const auto machines = need(lab::read_machines(
      need(os::read_file(GFLOW_SOURCE_DIR "/tests/fixtures/topology/machines.json"))));
  const lab::SharingOptions options;
  fmt::print(
      "{}\n",
      lab::report_text(lab::topology_report(lab::share_machines(machines, options, {}), options)));
  fmt::print("Microseconds for one choice, {} of them; milliseconds to make the table\n",
             kQuestions);
  fmt::print("{:<22}{:>9}{:>9}{:>10}{:>11}{:>14}{:>10}\n",
             "MACHINE",
             "P50",
             "P99",
             "MOST",
             "TABLE MS",
             "PEER P50",
             "PEER P99");
  for (const lab::WiredMachine& machine : machines) {
    if (machine.topology.gpus >= 8) print_times(machine);
  }
  fmt::print("\n");
  const auto large = std::ranges::find(machines, "torus2d-16", &lab::WiredMachine::name);
  if (large != machines.end()) print_peer_at_16(*large);
}
