// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>

#include "core/requests.h"
#include "os/file.h"
#include "store/samples.h"

namespace gflow::store::samples {

Directory::Directory() : path_("/tmp/gflow-store-XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) throw std::runtime_error("mkdtemp");
}

Directory::~Directory() {
  (void)os::remove_tree(path_);  // what is left in /tmp harms nobody
}

void forget_run(const std::string& path) {
  const std::string line = fmt::format("{:<255}\n", "gflow-ids-2 1 1 0 open - boot");
  if (!os::write_file(path + ".ids", line)) throw std::runtime_error("write " + path + ".ids");
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
          .allocation = {.node = "", .gpus = {0, 1, 5}, .cpus = {0, 1, 2, 3, 8}},
          .peers = {{"gpu-2", {0, 1, 7}, {4, 6}}, {"gpu-3", {2, 3, 4}, {}}},
          .placed_because = "best ring: 3 × NV2",
          .started = at(10),
          .started_mono = MonoTime(std::chrono::milliseconds(98'765)),
          .boot_id = "0b6b7a1e-1111-2222-3333-444455556666",
          .pid = 4321,
          .over_memory = true,
          .on_other_gpus = true,
          .borrows = true};
}

Outcome outcome() {
  return {.reason = EndReason::Signalled,
          .exit_code = 7,
          .signal = 9,
          .message = "said \"no\"\n",
          .run_time = std::chrono::milliseconds(1'234'567),
          .cpu_time = std::chrono::milliseconds(7'654'321),
          .peak_memory = Memory::gib(300),
          .peak_gpu_memory = Memory::gib(70)};
}

Job full(std::uint64_t id, JobState state) {
  Job job;
  job.id = JobId(id);
  job.spec.name = "träning 7";
  job.spec.user = {4'294'967'294U, "bob"};
  job.spec.project = "vision";
  job.spec.request = {.gpus = 2,
                      .share = Share::percent(35),
                      .share_limit = Share::percent(80),
                      .gpu_memory = Memory::gib(8),
                      .mode = GpuMode::Fraction,
                      .vendor = "nvidia",
                      .models = {"A100", "V100, 32G"},
                      .see_all = true,
                      .cpus = 16,
                      .memory = Memory::gib(64),
                      .nodes = 3,
                      .selector = {{"disk", "nvme"}, {"zone", ""}}};
  job.spec.priority = 200;
  job.spec.time_limit = std::chrono::seconds(7200);
  job.spec.grace = std::chrono::seconds(45);
  job.spec.begin = at(3600);
  job.spec.dependencies = {{JobId(3), JobId(5), JobId(70)}, DependencyMode::Any, false};
  job.spec.hold = true;
  job.spec.requeue = true;
  job.spec.max_retries = 4;
  job.spec.preemption = Preemption::Requeue;
  job.spec.preempt_signal = 10;
  job.spec.group = "sweep";
  job.spec.max_concurrent = 8;
  job.spec.allocation = true;
  job.spec.command = std::string("python train.py\0--x", 19);
  job.spec.work_dir = "/data/\xff\xfe";  // a path is bytes
  job.state = std::move(state);
  job.submitted = at(1);
  job.lived = std::chrono::milliseconds(7'000'001);
  job.payload_bytes = 4242;
  job.attempts = 3;
  job.retries = 2;
  job.preemptions = 1;
  job.served = std::chrono::milliseconds(86'400'001);
  job.served_gpu_time = std::chrono::milliseconds(123'456'789);
  return job;
}

Job on_a_named_node(Job job) {
  std::get<Running>(job.state).attempt.allocation.node = "gpu-1";
  return job;
}

/// What a job is that a database of schema 1 can hold.
Job as_of_schema_1(Job job) {
  job.spec.request = {.gpus = job.spec.request.gpus,
                      .cpus = job.spec.request.cpus,
                      .memory = job.spec.request.memory};
  job.spec.preemption = Preemption::None;
  job.spec.preempt_signal = 0;
  job.preemptions = 0;
  job.served = {};
  const auto plain = [](Attempt& attempt) {
    attempt.allocation.cpus.clear();
    attempt.peers.clear();
    attempt.placed_because.clear();
    attempt.over_memory = attempt.on_other_gpus = attempt.borrows = false;
  };
  if (auto* starting = std::get_if<Starting>(&job.state)) plain(starting->attempt);
  if (auto* running = std::get_if<Running>(&job.state)) plain(running->attempt);
  if (auto* ended = std::get_if<Ended>(&job.state)) {
    ended->outcome.peak_gpu_memory = {};
    if (ended->attempt) plain(*ended->attempt);
  }
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

std::vector<Drain> drains(int schema) {
  const std::string uuid = schema < 11 ? "" : "GPU-5d";
  return {{"", 5, "ECC errors", "root", uuid},
          {"gpu-2", std::nullopt, "", "alice"},
          {"", 0, "fan", ""}};
}

/// With the attempt of each as that makes it.
template <typename Edit>
std::vector<Job> with_attempts(std::vector<Job> jobs, Edit edit) {
  for (Job& job : jobs) {
    if (auto* starting = std::get_if<Starting>(&job.state)) edit(starting->attempt);
    if (auto* running = std::get_if<Running>(&job.state)) edit(running->attempt);
    auto* ended = std::get_if<Ended>(&job.state);
    if (ended != nullptr && ended->attempt) edit(*ended->attempt);
  }
  return jobs;
}

/// Before schema 11 it was not known whether something was said of an attempt.
std::vector<Job> before_schema_11(std::vector<Job> jobs) {
  return with_attempts(std::move(jobs), [](Attempt& attempt) {
    attempt.over_memory = false;
    attempt.on_other_gpus = false;
  });
}

/// As schema 7 makes them of jobs from before: the newest moment of all is at(99), the time seen 0.
std::vector<Job> before_schema_7(std::vector<Job> jobs) {
  for (Job& job : jobs) {
    job.lived = job.submitted - at(99);
    if (auto* queued = std::get_if<Queued>(&job.state)) *queued = {.requeues = queued->requeues};
  }
  return jobs;
}

std::vector<Job> states_of(int schema) {
  const Stop stop{EndReason::Cancelled, {0, "root"}, 10};
  std::vector<Job> jobs = {queued(1),
                           full(2,
                                Queued{.requeues = 2,
                                       .not_before = std::chrono::milliseconds(7'777'777),
                                       .why = "no space left",
                                       .preemption_at = std::chrono::milliseconds(7'700'000),
                                       .victims = {JobId(8), JobId(11)}}),
                           full(4, Held{""}),
                           full(6, Held{"3 failed launches"}),
                           full(8, Starting{attempt(), {}, 1}),
                           full(9, Starting{attempt(), stop, 0}),
                           full(10, Running{attempt(), {}, {}}),
                           full(11, Running{attempt(), stop, {}}),
                           full(12, Ended{Status::Finished, outcome(), at(99), attempt()}),
                           full(13, Ended{Status::Failed, outcome(), at(99), attempt()}),
                           full(14, Ended{Status::Cancelled, {}, at(99), {}}),
                           full(15, Ended{Status::Timeout, outcome(), at(99), attempt()}),
                           full(1'000'000, Ended{Status::Lost, outcome(), at(99), attempt()})};
  if (schema < 2) {
    for (Job& job : jobs) job = as_of_schema_1(std::move(job));
    return jobs;
  }
  using std::chrono::milliseconds;
  const MonoTime since(milliseconds(99'999));
  Outcome preempted = outcome();
  preempted.reason = EndReason::Preempted;
  const Stop room{EndReason::Preempted, {}, 0};
  const Job more[] = {
      full(20, Running{attempt(), {}, since, milliseconds(1)}),
      full(21, Running{attempt(), room, since, milliseconds(77)}),
      on_a_named_node(full(22, Running{attempt(), {}, {}, milliseconds(12'345)})),
      full(23, Ended{Status::Cancelled, preempted, at(99), attempt()}),
  };
  jobs.insert(jobs.end() - 1, std::begin(more), std::end(more));
  if (schema < 4) return jobs;
  if (schema >= 15) {
    Job suspended = full(24, Running{attempt(), {}, since, milliseconds(5), 0, "alice"});
    jobs.insert(jobs.end() - 1, std::move(suspended));
  }
  if (schema >= 21) {
    jobs.insert(jobs.end() - 1, full(25, Running{.attempt = attempt(), .lends = true}));
  }
  if (schema >= 23) {
    const GpuMove move{.from = 2, .to = 0, .from_uuid = "GPU-2", .to_uuid = "GPU-0"};
    jobs.insert(jobs.end() - 1,
                full(26, Running{.attempt = attempt(), .move = move, .move_refused = "no room"}));
  }
  for (Job& job : jobs) {
    if (auto* ended = std::get_if<Ended>(&job.state)) ended->lived = milliseconds(7'654'321);
  }
  return jobs;
}

std::vector<Job> every_state(int schema) {
  std::vector<Job> jobs = states_of(schema);
  for (Job& job : jobs) {
    // As the databases have them: one with a limit of its share, and no allocation.
    const bool has_limit = schema >= 17 && job.id == JobId(24);
    job.spec.request.share_limit = has_limit ? Share::percent(70) : Share{};
    job.spec.allocation = false;
    // As schema 18 makes it of what is asked for last.
    if (schema < 18) job.served_gpu_time = gpu_time_of(job.spec.request, job.served);
    if (schema >= 9) continue;
    job.payload_bytes = is_ended(job) ? 0 : static_cast<std::int64_t>(bytes_of(payload()));
  }
  if (schema < 21) {
    jobs = with_attempts(std::move(jobs), [](Attempt& attempt) { attempt.borrows = false; });
  }
  if (schema < 7) jobs = before_schema_7(std::move(jobs));
  return schema < 11 ? before_schema_11(std::move(jobs)) : jobs;
}

std::vector<JobRange> ranges() {
  JobRange alike{.first = queued(2'000'001), .count = 1000};
  JobRange made_up{.first = queued(2'001'001), .count = 2, .naming = {.by_id = true}};
  made_up.first.spec.name = made_up_name(made_up.first.id.value);
  JobRange numbered{.first = queued(2'001'003), .count = 500, .naming = {.step = 7}};
  numbered.first.spec.name = "an_array_3";
  numbered.first.state = Held{};
  numbered.first.spec.dependencies.jobs = {JobId(1), JobId(2)};
  return {alike, made_up, numbered};
}

namespace {

TaskRange tasks_of(const JobRange& range) { return {.first = 5, .count = range.count, .step = 2}; }

}  // namespace

std::vector<SavedArray> arrays_of(const std::vector<JobRange>& ranges, const Payload& payload) {
  std::vector<SavedArray> arrays;
  for (const JobRange& range : ranges)
    arrays.push_back({range.first.id, tasks_of(range), &payload});
  return arrays;
}

Payload payload_of(const JobRange& range, std::uint64_t i) {
  Payload whole = payload();
  whole.environment.push_back("GFLOW_ARRAY_TASK_ID=" + std::to_string(tasks_of(range).number(i)));
  return whole;
}

std::vector<NodeHealth> unhealthy() {
  using std::chrono::milliseconds;
  return {{"gpu-1", "no space left", 3, milliseconds(7'777'777), JobId(8), {JobId(2), JobId(9)}},
          {"gpu-2", "", 1, milliseconds(1), {}, {}}};
}

std::vector<MadeSlice> slices() {
  return {{"gpu-1", "GPU-5d", "3g.40gb", 4, 4, SliceStage::Made, "MIG-7e", 2, JobId(3)},
          {"gpu-1", "GPU-6e", "1g.10gb", 6, 1, SliceStage::Making}};
}

std::vector<Token> tokens() {
  const std::string digest(64, 'd');
  return {{"ci", {1000, "alice"}, Scope::Submit, digest, at(1), at(2)},
          {"ci", {1001, "bob"}, Scope::Read, "e" + digest.substr(1), at(3), {}},
          {"ops", {1001, "bob"}, Scope::Admin, "f" + digest.substr(1), at(4), at(5)}};
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
  for (const Job& job : jobs) {
    batch.saves.push_back(&job);
    batch.payloads.push_back({job.id, &payload});
  }
  return batch;
}

}  // namespace gflow::store::samples
