// SPDX-License-Identifier: Apache-2.0
// What the store costs: commits of several sizes, the growth to a long history, and opening and
// loading it again. Usage: store_bench DIRECTORY [ENDED [QUEUED]]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "store/store.h"

namespace gflow {
namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

WallTime at(std::uint64_t second) { return WallTime(std::chrono::seconds(1'770'000'000 + second)); }

Job queued(std::uint64_t id) {
  Job job;
  job.id = JobId(id);
  job.spec.name = fmt::format("brave-otter-{}", id);
  job.spec.user = {1000, "alice"};
  job.spec.request = {.gpus = 1, .cpus = 8, .memory = Memory::gib(32)};
  job.spec.time_limit = std::chrono::seconds(7200);
  job.spec.command = "python train.py --model resnet50 --learning-rate 0.001";
  job.spec.work_dir = "/home/alice/projects/vision";
  if (id % 10 == 0) job.spec.dependencies.jobs = {JobId(id - 1)};
  job.submitted = at(id);
  return job;
}

Job ended(std::uint64_t id) {
  Job job = queued(id);
  const Attempt attempt{.number = 1,
                        .allocation = {{3}},
                        .started = at(id + 5),
                        .started_mono = MonoTime(std::chrono::seconds(id + 5)),
                        .boot_id = "0b6b7a1e-1111-2222-3333-444455556666",
                        .pid = 4321};
  Outcome outcome;
  outcome.run_time = std::chrono::minutes(30);
  job.attempts = 1;
  job.state = Ended{Status::Finished, outcome, at(id + 1805), attempt};
  return job;
}

Payload payload() {
  Payload payload;
  payload.argv = {"train.sh", "--model", "resnet50"};
  payload.script = std::string(800, '#');
  for (int i = 0; i < 40; ++i)
    payload.environment.push_back(fmt::format("VARIABLE_{}=value {}", i, i));
  return payload;
}

void check(const Result<void>& result) {
  if (result) return;
  fmt::print(stderr, "{}\n", result.error().message);
  std::exit(1);
}

std::unique_ptr<store::Store> open(const std::string& path) {
  auto store = store::Store::open(path);
  if (store) return std::move(*store);
  fmt::print(stderr, "{}\n", store.error().message);
  std::exit(1);
}

/// Commits `count` jobs made by `make`, `size` at a time; the ids from `first` on.
double commit(store::Store& store,
              std::uint64_t first,
              std::uint64_t count,
              std::uint64_t size,
              Job (*make)(std::uint64_t)) {
  const Payload what = payload();
  const Stopwatch watch;
  for (std::uint64_t from = first; from < first + count; from += size) {
    std::vector<Job> jobs;
    for (std::uint64_t id = from; id < std::min(from + size, first + count); ++id)
      jobs.push_back(make(id));
    store::Batch batch;
    for (const Job& job : jobs) {
      batch.saves.push_back(&job);
      if (make == queued) batch.payloads.emplace_back(job.id, &what);
    }
    check(store.commit(batch));
  }
  return watch.seconds();
}

void commits(const std::string& path) {
  struct Case {
    std::uint64_t size;
    std::uint64_t count;
  };
  auto store = open(path);
  std::uint64_t next = 1;
  for (const Case& c : {Case{1, 1000}, Case{8, 8000}, Case{64, 30'000}, Case{1000, 50'000}}) {
    const double seconds = commit(*store, next, c.count, c.size, queued);
    fmt::print(
        "submit {:4} a commit: {:7.0f} jobs/s\n", c.size, static_cast<double>(c.count) / seconds);
    next += c.count;
  }
  for (const Case& c : {Case{1, 1000}, Case{1000, 50'000}}) {
    const double seconds = commit(*store, 1, c.count, c.size, ended);
    fmt::print(
        "end    {:4} a commit: {:7.0f} jobs/s\n", c.size, static_cast<double>(c.count) / seconds);
  }
}

/// As if the last run had not ended in order.
void forget_end(const std::string& path) {
  std::fstream ids(path + ".ids", std::ios::in | std::ios::out | std::ios::binary);
  ids << fmt::format("{:<255}\n", "gflow-ids-2 1 1 0 open - boot");
}

void history(const std::string& path, std::uint64_t many_ended, std::uint64_t many_queued) {
  {
    auto store = open(path);
    const double seconds = commit(*store, 1, many_ended, 10'000, ended) +
                           commit(*store, many_ended + 1, many_queued, 10'000, queued);
    fmt::print("write  {} ended, {} queued: {:.2f} s\n", many_ended, many_queued, seconds);
  }
  for (const char* how : {"in order", "killed"}) {
    const Stopwatch opening;
    auto store = open(path);
    const double opened = opening.seconds();
    const Stopwatch loading;
    const std::size_t jobs = store->load().value().jobs.size();
    fmt::print("open after the last run ended {}: {:.2f} s, load {} jobs: {:.2f} s\n",
               how,
               opened,
               jobs,
               loading.seconds());
    store.reset();
    forget_end(path);
  }
}

}  // namespace
}  // namespace gflow

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: store_bench DIRECTORY [ENDED [QUEUED]]\n");
    return 2;
  }
  const std::string directory = argv[1];
  gflow::commits(directory + "/commits.db");
  gflow::history(directory + "/history.db",
                 argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1'000'000,
                 argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 100'000);
}
