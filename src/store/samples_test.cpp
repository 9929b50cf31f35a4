// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <stdexcept>

#include "os/file.h"
#include "store/samples.h"

namespace gflow::store::samples {

Directory::Directory() : path_("/tmp/gflow-store-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
}

Directory::~Directory() {
  (void)os::remove_tree(path_);  // what is left in /tmp harms nobody
}

WallTime at(int seconds) {
  return WallTime(std::chrono::milliseconds(1'770'000'000'123)) + std::chrono::seconds(seconds);
}

Job queued(std::uint64_t id) {
  Job job;
  job.id = JobId(id);
  job.spec.name = "job";
  job.spec.user = {1000, "alice"};
  job.spec.request.gpus = 1;
  job.spec.command = "sleep 1";
  job.spec.work_dir = "/home/alice";
  job.submitted = at(0);
  return job;
}

Attempt attempt() {
  return {.number = 3,
          .allocation = {{0, 1, 5}},
          .started = at(10),
          .started_mono = MonoTime(std::chrono::milliseconds(98'765)),
          .boot_id = "0b6b7a1e-1111-2222-3333-444455556666",
          .pid = 4321};
}

Outcome outcome() {
  return {.reason = EndReason::Signalled,
          .exit_code = 7,
          .signal = 9,
          .message = "said \"no\"\n",
          .run_time = std::chrono::milliseconds(1'234'567),
          .cpu_time = std::chrono::milliseconds(7'654'321),
          .peak_memory = Memory::gib(300)};
}

Job full(std::uint64_t id, JobState state) {
  Job job;
  job.id = JobId(id);
  job.spec.name = "träning 7";
  job.spec.user = {4'294'967'294U, "bob"};
  job.spec.project = "vision";
  job.spec.request = {.gpus = 2, .cpus = 16, .memory = Memory::gib(64)};
  job.spec.priority = 200;
  job.spec.time_limit = std::chrono::seconds(7200);
  job.spec.grace = std::chrono::seconds(45);
  job.spec.begin = at(3600);
  job.spec.dependencies = {{JobId(3), JobId(5), JobId(70)}, DependencyMode::Any, false};
  job.spec.hold = true;
  job.spec.requeue = true;
  job.spec.max_retries = 4;
  job.spec.group = "sweep";
  job.spec.max_concurrent = 8;
  job.spec.command = std::string("python train.py\0--x", 19);
  job.spec.work_dir = "/data/\xff\xfe";  // a path is bytes
  job.state = std::move(state);
  job.submitted = at(1);
  job.attempts = 3;
  job.retries = 2;
  return job;
}

Payload payload() {
  return {.argv = {"train.sh", "", std::string("a\0b", 3), "\xff"},
          .script = "#!/bin/sh\necho $1\n",
          .environment = {"HOME=/home/bob", "EMPTY=", "LINES=a\nb"},
          .config_name = "config1.yaml",
          .config = std::string("x: 1\0", 5),
          .umask = 077};
}

std::vector<Job> every_state() {
  const Stop stop{EndReason::Cancelled, {0, "root"}, 10};
  return {queued(1),
          full(2, Queued{.launch_failures = 2, .not_before = {}}),
          full(4, Held{""}),
          full(6, Held{"3 failed launches"}),
          full(8, Starting{attempt(), {}, 1}),
          full(9, Starting{attempt(), stop, 0}),
          full(10, Running{attempt(), {}}),
          full(11, Running{attempt(), stop}),
          full(12, Ended{Status::Finished, outcome(), at(99), attempt()}),
          full(13, Ended{Status::Failed, outcome(), at(99), attempt()}),
          full(14, Ended{Status::Cancelled, {}, at(99), {}}),
          full(15, Ended{Status::Timeout, outcome(), at(99), attempt()}),
          full(1'000'000, Ended{Status::Lost, outcome(), at(99), attempt()})};
}

std::unique_ptr<Store> open(const std::string& path) {
  auto store = Store::open(path);
  if (!store) throw std::runtime_error(store.error().message);
  return std::move(*store);
}

std::vector<Job> jobs_of(Store& store) {
  auto loaded = store.load();
  if (!loaded) throw std::runtime_error(loaded.error().message);
  return std::move(loaded->jobs);
}

Batch batch_of(const std::vector<Job>& jobs, const Payload& payload) {
  Batch batch;
  batch.now = at(0);
  for (const Job& job : jobs) {
    batch.saves.push_back(&job);
    batch.payloads.emplace_back(job.id, &payload);
  }
  return batch;
}

}  // namespace gflow::store::samples
