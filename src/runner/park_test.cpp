// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "runner/attempt_files.h"
#include "runner/test_bench.h"

/// GPU memory of jobs that are suspended: the real gflow-park, with the driver of tests/fake_cuda.
namespace gflow::runner {
namespace {

using std::chrono::milliseconds;

constexpr const char* kUuid = "GPU-11111111-2222-3333-4444-555555555555";
constexpr const char* kSecond = "GPU-66666666-2222-3333-4444-555555555555";
constexpr std::int64_t kGib = std::int64_t{1} << 30;
constexpr Memory kHas = Memory::gib(1) + Memory::mib(300);  ///< with its context

/// A job whose program uses the GPU as it is told.
class GpuJob {
 public:
  GpuJob(const std::string& directory, JobId id)
      : id(id),
        asked_(directory + "/asked" + std::to_string(id.value)),
        said_(directory + "/said" + std::to_string(id.value)) {}

  [[nodiscard]] std::string script() const {
    const std::string client = os::program_directory() + "/../fake_cuda/cuda_client";
    return client + " proc < " + asked_.path() + " > " + said_.path();
  }
  /// The numbers of the driver's answer, its result first.
  std::vector<std::int64_t> ask(const std::string& command) {
    asked_.say(command);
    std::istringstream line(said_.line());
    std::vector<std::int64_t> numbers;
    for (std::int64_t number = 0; line >> number;) numbers.push_back(number);
    return numbers;
  }
  /// What the driver gave, or -1.
  std::int64_t get(const std::string& command) {
    const auto numbers = ask(command);
    EXPECT_TRUE(!numbers.empty() && numbers.front() == 0) << command;
    return numbers.size() < 2 ? -1 : numbers[1];
  }
  void begin() {
    (void)get("init");
    (void)get("context 0");
  }
  void fill(std::int64_t bytes) {
    block_ = std::to_string(get("alloc " + std::to_string(bytes)));
    filled_ = get("fill " + block_ + " 1048576 " + std::to_string(id.value));
  }
  [[nodiscard]] bool has_its_memory() { return get("sum " + block_ + " 1048576") == filled_; }

  JobId id;

 private:
  Fifo asked_;
  Fifo said_;
  std::string block_;
  std::int64_t filled_ = 0;
};

class Park : public RunnerBench {
 protected:
  void SetUp() override {
    options_.park = os::program_directory() + "/../bin/gflow-park";
    options_.probes_parking = true;
    options_.end_patience = milliseconds(50);  // it is tried again as soon as this polls
    RunnerBench::SetUp();
    const std::string driver = os::program_directory() + "/../fake_cuda";
    const std::string gpus = path("gpus");
    ASSERT_TRUE(os::write_file(gpus,
                               "driver 13000\ncontext 300\ndevice " + std::string(kUuid) +
                                   " 16384 NVIDIA H100\ndevice " + kSecond +
                                   " 16384 NVIDIA H100\n"));
    ::setenv("GFLOW_FAKE_CUDA", gpus.c_str(), 1);
    ::setenv("LD_LIBRARY_PATH", driver.c_str(), 1);
    reopen();
    job_ = start(7);
    job_->fill(kGib);
  }
  void TearDown() override {
    ::unsetenv("GFLOW_FAKE_CUDA_KILLED_AT");
    RunnerBench::TearDown();
    ::unsetenv("GFLOW_FAKE_CUDA");
    ::unsetenv("LD_LIBRARY_PATH");
  }

  std::unique_ptr<GpuJob> start(std::uint64_t id) {
    auto job = std::make_unique<GpuJob>(directory_, JobId(id));
    LaunchOrder made = script(job->script());
    made.job = job->id;
    made.environment.push_back("GFLOW_FAKE_CUDA=" + path("gpus"));
    made.environment.push_back("LD_LIBRARY_PATH=" + os::program_directory() + "/../fake_cuda");
    launch(made);
    (void)wait_started(job->id);
    job->begin();
    return job;
  }
  [[nodiscard]] ParkedMemory wait_parks(JobId id = JobId(7)) {
    const auto report = next(id);
    const auto* parks = report ? std::get_if<Parks>(&*report) : nullptr;
    if (parks != nullptr) return parks->parked;
    ADD_FAILURE() << "nothing was told of its GPU memory";
    return {};
  }
  void move(bool is_back = false) {
    const std::string there = is_back ? kUuid : kSecond;
    const std::string here = is_back ? kSecond : kUuid;
    const GpuMove wanted{
        .from = is_back ? 1 : 0, .to = is_back ? 0 : 1, .from_uuid = here, .to_uuid = there};
    runner_->move(JobId(7), 1, wanted, Memory::gib(2));
  }
  /// Why it stayed; "" if it did not.
  [[nodiscard]] std::string wait_moved() {
    const auto report = next(JobId(7));
    const auto* moved = report ? std::get_if<Moved>(&*report) : nullptr;
    if (moved != nullptr) return moved->refused;
    ADD_FAILURE() << "nothing was told of the move";
    return "nothing";
  }
  /// It runs there, with what it had.
  void expect_on(const std::string& gpu) {
    EXPECT_EQ(record(), ParkRecord{});
    const auto moved = files().moved_to().value();
    EXPECT_EQ(moved ? moved->uuid : "", gpu);
    EXPECT_FALSE(stands());
    EXPECT_TRUE(job_->has_its_memory());
  }
  /// Looks at it again and again, as no report tells.
  template <typename Condition>
  [[nodiscard]] bool comes_true(Condition condition) {
    for (int looks = 0; looks < kPatienceMs; ++looks) {
      for (Report& report : runner_->poll()) reports_.push_back(std::move(report));
      if (condition()) return true;
      (void)::poll(nullptr, 0, 1);
    }
    return false;
  }
  [[nodiscard]] bool is_in_doubt() {
    return comes_true([&] { return !runner_->doubts().empty(); });
  }
  [[nodiscard]] AttemptFiles files() const { return {options_.attempts_dir, JobId(7), 1}; }
  [[nodiscard]] ParkRecord record() const { return files().park_record().value(); }
  [[nodiscard]] bool stands() const {
    const auto order = files().order().value();
    const int pid = files().started_pid().value();
    const auto supervisor = os::process_facts(pid);
    return supervisor && stands_still(supervisor->parent, order->freeze_cgroup).value_or(false);
  }
  void park() {
    runner_->suspend(JobId(7), 1, Memory::gib(2));
    EXPECT_EQ(wait_parks(), parked_);
    EXPECT_EQ(record().how, Parking::Parked);
    EXPECT_TRUE(comes_true([&] { return stands(); }));
  }
  void unpark() {
    runner_->resume(JobId(7), 1);
    EXPECT_EQ(wait_parks(), ParkedMemory{});
    EXPECT_EQ(record(), ParkRecord{});
    EXPECT_TRUE(job_->has_its_memory());
  }
  /// Whether gflow-park, which this starts, is killed in this call of the driver; false where it
  /// ended before that.
  template <typename Begin>
  [[nodiscard]] bool is_killed_in(int call, Begin begin) {
    ::setenv("GFLOW_FAKE_CUDA_KILLED_AT", std::to_string(call).c_str(), 1);
    begin();
    const bool is_over =
        comes_true([&] { return !runner_->doubts().empty() || !reports_.empty(); });
    ::unsetenv("GFLOW_FAKE_CUDA_KILLED_AT");
    return is_over && !runner_->doubts().empty();
  }
  /// From now on gflow-park is this script.
  void use_park(const std::string& script) {
    options_.park = path("park");
    ASSERT_TRUE(os::write_file(options_.park, "#!/bin/sh\n" + script + "\n", 0755));
    EXPECT_EQ(adopt(), ParkedMemory{});
  }
  /// As after a restart of the daemon: what is told of it at once.
  [[nodiscard]] ParkedMemory adopt() {
    reopen();
    const auto adoption = runner_->adopt(JobId(7), 1, options_.boot_id);
    const auto* runs = std::get_if<StillRuns>(&adoption);
    EXPECT_NE(runs, nullptr);
    return runs == nullptr ? ParkedMemory{} : runs->parked;
  }

  std::unique_ptr<GpuJob> job_;
  ParkedMemory parked_{.how = Parking::Parked, .memory = kHas};
};

TEST_P(Park, AnotherHasTheGpuMeanwhileAndItComesBack) {
  park();
  {
    const auto other = start(8);
    other->fill(15 * kGib);
    EXPECT_TRUE(other->has_its_memory());
    runner_->stop(JobId(8), 1, SIGKILL, EndReason::Cancelled);
    (void)wait_gone(JobId(8));
  }
  unpark();
  park();
  unpark();
}

TEST_P(Park, WhatTheDriverOfThisMachineCanIsFoundOut) {
  EXPECT_TRUE(comes_true([&] { return runner_->parks(""); }));
  EXPECT_EQ(runner_->enforcement("").parking, executor::kGpuParked);
  const std::string old_driver = os::program_directory() + "/../fake_cuda_old";
  ::setenv("LD_LIBRARY_PATH", old_driver.c_str(), 1);
  (void)adopt();
  EXPECT_TRUE(comes_true([&] {
    return runner_->enforcement("").parking.starts_with(
        "none: the NVIDIA driver is older than 570");
  }));
  EXPECT_FALSE(runner_->parks(""));
  options_.probes_parking = false;
  (void)adopt();
  EXPECT_EQ(runner_->enforcement("").parking, "");
}

TEST_P(Park, OneThatCannotBeIsSuspendedWithItsMemory) {
  (void)job_->get("managed 1048576");
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  const ParkedMemory told = wait_parks();
  EXPECT_EQ(told.how, Parking::None);
  EXPECT_NE(told.refused.find("the driver cannot take away what process"), std::string::npos);
  EXPECT_TRUE(comes_true([&] { return stands(); }));
  EXPECT_EQ(adopt(), told) << "that is known after a restart, too";
  runner_->suspend(JobId(7), 1, {});
  runner_->resume(JobId(7), 1);
  EXPECT_TRUE(job_->has_its_memory());
}

TEST_P(Park, NoMoreIsTakenThanMayBe) {
  runner_->suspend(JobId(7), 1, Memory::gib(1));
  EXPECT_EQ(wait_parks().refused, "its processes have 1.29G of GPU memory, and 1G may be taken");
  EXPECT_TRUE(comes_true([&] { return stands(); }));
  runner_->resume(JobId(7), 1);
  EXPECT_TRUE(job_->has_its_memory());
}

TEST_P(Park, WhereItsGpuHasNoRoomItWaitsForItAndSaysSo) {
  park();
  const auto other = start(8);
  other->fill(15 * kGib);
  runner_->resume(JobId(7), 1);
  ASSERT_TRUE(is_in_doubt());
  EXPECT_NE(runner_->doubts().front().why.find("that are to come back"), std::string::npos);
  EXPECT_TRUE(comes_true([&] { return stands() && record().how == Parking::Parked; }));
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  EXPECT_EQ(wait_parks(), parked_);
  EXPECT_TRUE(runner_->doubts().empty());
  runner_->resume(JobId(7), 1);
  ASSERT_TRUE(is_in_doubt());
  runner_->stop(JobId(8), 1, SIGKILL, EndReason::Cancelled);
  (void)wait_gone(JobId(8));
  EXPECT_EQ(wait_parks(), ParkedMemory{});
  EXPECT_TRUE(runner_->doubts().empty());
  EXPECT_TRUE(job_->has_its_memory());
}

TEST_P(Park, OneThatIsParkedIsEndedAsAnyOther) {
  park();
  runner_->stop(JobId(7), 1, 0, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
}

TEST_P(Park, OneThatEndsMeanwhileIsNotWaitedFor) {
  (void)job_->get("launch 0");  // it does not end
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  runner_->stop(JobId(7), 1, SIGKILL, EndReason::Cancelled);
  EXPECT_EQ(wait_gone().reason, EndReason::Cancelled);
}

TEST_P(Park, WhatTheDriverLostEndsIt) {
  use_park("echo it is gone; exit 4");
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  const Outcome outcome = wait_gone();
  EXPECT_EQ(outcome.reason, EndReason::SupervisorDied);
  EXPECT_NE(outcome.message.find(": it is gone"), std::string::npos) << outcome.message;
}

TEST_P(Park, WhatStaysUnclearIsGivenBack) {
  use_park("[ $1 = unpark ] && exit 0; echo nobody knows; exit 3");
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  EXPECT_EQ(wait_parks(), ParkedMemory{.refused = "nobody knows"});
  EXPECT_TRUE(comes_true([&] { return stands(); }));
  EXPECT_EQ(record(), ParkRecord{.refused = "nobody knows"});
}

TEST_P(Park, OneThatNeitherEndsNorSaysAWordIsKilledAndTriedAgain) {
  options_.park_patience = std::chrono::seconds(1);
  use_park("[ $1 = unpark ] && exit 0; kill -STOP $$");
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  ASSERT_TRUE(is_in_doubt());
  EXPECT_EQ(wait_parks(), ParkedMemory{.refused = "gflow-park was killed"});
}

/// That says nothing of the job: it is tried again in the next life of the daemon.
TEST_P(Park, WhatTheMachineLacksIsNotRemembered) {
  use_park("exit 0");
  ASSERT_TRUE(os::remove_tree(options_.park));
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  EXPECT_NE(wait_parks().refused, "");
  EXPECT_EQ(record(), ParkRecord{});
  EXPECT_TRUE(comes_true([&] { return stands(); }));
}

/// Whoever asks next knows no more than that it had been begun.
TEST_P(Park, WhereItsGpuHasNoRoomItStandsAlsoForOneWhoComesBack) {
  park();
  const auto other = start(8);
  other->fill(15 * kGib);
  ASSERT_TRUE(is_killed_in(1, [&] { runner_->resume(JobId(7), 1); }));
  EXPECT_EQ(adopt(), (ParkedMemory{.how = Parking::Begun, .memory = kHas}));
  EXPECT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(8), 1, options_.boot_id)));
  runner_->resume(JobId(7), 1);
  ASSERT_TRUE(is_in_doubt());
  EXPECT_TRUE(comes_true([&] { return stands() && record().how == Parking::Parked; }));
  runner_->stop(JobId(8), 1, SIGKILL, EndReason::Cancelled);
  (void)wait_gone(JobId(8));
  EXPECT_EQ(wait_parks(), ParkedMemory{});
  EXPECT_TRUE(job_->has_its_memory());
}

TEST_P(Park, WhoComesBackFindsItParked) {
  park();
  EXPECT_EQ(adopt(), parked_);
  EXPECT_TRUE(stands());
  runner_->suspend(JobId(7), 1, {});
  EXPECT_EQ(wait_parks(), parked_);
  EXPECT_EQ(adopt(), parked_);
  unpark();
  EXPECT_EQ(adopt(), ParkedMemory{});
}

/// The daemon and its gflow-park are killed, this one in each call of the driver: whoever comes
/// back brings it on, to what it is to be then.
TEST_P(Park, WhoeverIsKilledAnywhereIsFollowedByOneWhoBringsItOn) {
  int call = 1;
  for (; call < 100; ++call) {
    if (!is_killed_in(call, [&] { runner_->suspend(JobId(7), 1, Memory::gib(2)); })) break;
    EXPECT_EQ(adopt().how, Parking::Begun) << call;
    EXPECT_FALSE(stands()) << call;
    if (call % 2 == 0) {
      runner_->suspend(JobId(7), 1, {});
      EXPECT_EQ(wait_parks(), parked_) << call;
    }
    unpark();
  }
  EXPECT_GT(call, 4);
  EXPECT_EQ(wait_parks(), parked_);
  for (call = 1; call < 100; ++call) {
    if (!is_killed_in(call, [&] { runner_->resume(JobId(7), 1); })) break;
    EXPECT_EQ(adopt().how, Parking::Begun) << call;
    if (call % 2 == 0) unpark();
    park();
  }
  EXPECT_GT(call, 4);
  EXPECT_EQ(wait_parks(), ParkedMemory{});
  EXPECT_TRUE(job_->has_its_memory());
}

TEST_P(Park, ItMovesToAnotherGpuAndBack) {
  EXPECT_EQ(runner_->cannot_move("n0"), "");
  move();
  EXPECT_EQ(wait_moved(), "");
  expect_on(kSecond);
  move();
  EXPECT_EQ(wait_moved(), "") << "told twice it is done once";
  move(true);
  EXPECT_EQ(wait_moved(), "");
  expect_on(kUuid);
  park();
  unpark();
}

TEST_P(Park, OneThatCannotBeMovedRunsOnWhereItWas) {
  const std::string managed = std::to_string(job_->get("managed 1048576"));
  move();
  EXPECT_TRUE(wait_moved().starts_with("the driver cannot take away what process "));
  (void)job_->get("free " + managed);
  EXPECT_FALSE(files().moved_to().value());
  EXPECT_TRUE(job_->has_its_memory());
  move();
  EXPECT_EQ(wait_moved(), "") << "whoever asks again has it tried again";
}

TEST_P(Park, WhereTheOtherGpuHasNoRoomItComesBack) {
  auto other = start(8);
  (void)other->get("context 1");
  (void)other->get("alloc " + std::to_string(15 * kGib));
  move();
  // As one leaves it that was killed when it had noted that the job is there.
  ASSERT_TRUE(files().note_moved_to({1, kSecond}));
  EXPECT_TRUE(wait_moved().ends_with("that are to come back"));
  expect_on(kUuid);
  move();
  EXPECT_TRUE(wait_moved().ends_with("that are to come back")) << "it is not taken to be there";
}

TEST_P(Park, WhoeverIsKilledInAMoveIsFollowedByOneWhoBringsItThere) {
  int call = 1;
  bool is_back = false;
  for (; call < 100; ++call) {
    if (!is_killed_in(call, [&] { move(is_back); })) break;
    (void)adopt();
    EXPECT_FALSE(stands()) << call;
    move(is_back);
    EXPECT_EQ(wait_moved(), "") << call;
    expect_on(is_back ? kUuid : kSecond);
    is_back = !is_back;
  }
  EXPECT_GT(call, 4);
  EXPECT_EQ(wait_moved(), "");
  expect_on(is_back ? kUuid : kSecond);
}

/// One who was at it already when the daemon was killed is at it still.
TEST_P(Park, TwoAreNeverAtItAtOnce) {
  {
    const os::Fd earlier = files().begin_parking(Memory::gib(2)).value();
    EXPECT_EQ(adopt().how, Parking::Begun);
    runner_->suspend(JobId(7), 1, {});
    ASSERT_TRUE(is_in_doubt());
    EXPECT_EQ(runner_->doubts().front().why, "gflow-park is still at it, as it was begun before");
    EXPECT_FALSE(stands());
  }
  EXPECT_EQ(wait_parks(), parked_);
  unpark();
}

TEST_P(Park, OneThatIsResumedMeanwhileHasItBack) {
  runner_->suspend(JobId(7), 1, Memory::gib(2));
  runner_->resume(JobId(7), 1);
  EXPECT_EQ(wait_parks(), ParkedMemory{});
  EXPECT_TRUE(job_->has_its_memory());
}

/// What comes to host memory is charged to its control group.
TEST_P(Park, ItsMemoryLimitGrowsByWhatIsTaken) {
  LaunchOrder made = order({"sleep", "1000"});
  made.job = JobId(9);
  made.limits.memory = Memory::gib(1);
  launch(made);
  (void)wait_started(JobId(9));
  const auto its = AttemptFiles(options_.attempts_dir, JobId(9), 1).order().value();
  if (its->memory_cgroup.empty()) GTEST_SKIP() << "memory is not limited here";
  const auto limit = [&] {
    const std::string unified = its->memory_cgroup + "/memory.max";
    const std::string name =
        os::exists(unified) ? unified : its->memory_cgroup + "/memory.limit_in_bytes";
    return std::atoll(read(name).c_str());
  };
  EXPECT_EQ(limit(), kGib);
  runner_->suspend(JobId(9), 1, Memory::gib(2));
  EXPECT_EQ(limit(), 3 * kGib);
  EXPECT_EQ(wait_parks(JobId(9)), (ParkedMemory{.how = Parking::Parked}));
  EXPECT_EQ(limit(), kGib) << "it had nothing";
  runner_->resume(JobId(9), 1);
  EXPECT_EQ(wait_parks(JobId(9)), ParkedMemory{});
  EXPECT_EQ(limit(), kGib);
}

INSTANTIATE_TEST_SUITE_P(With, Park, ::testing::Values(true, false), cgroups_or_not);

}  // namespace
}  // namespace gflow::runner
