// SPDX-License-Identifier: Apache-2.0
// The loop with everything real but the devices: a store on disk, supervisors, jobs.
#include "daemon/loop.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <cstdlib>
#include <filesystem>

#include "core/executor_for_tests.h"
#include "core/machine_for_tests.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/user.h"
#include "runner/runner.h"

namespace gflow::daemon {
namespace {

/// A directory of its own; gone at the end.
class Place {
 public:
  Place() {
    std::string path = testing::TempDir() + "/gflow-loop-XXXXXX";
    path_ = ::mkdtemp(path.data());
  }
  ~Place() { std::filesystem::remove_all(path_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] std::string at(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

Parts parts_in(const Place& place) {
  Options options;
  options.paths.state_dir = place.at("state");
  options.paths.logs_dir = place.at("logs");
  options.paths.run_dir = place.at("run");
  options.paths.socket = place.at("run/s");
  for (const std::string& directory :
       {options.paths.attempts_dir(), options.paths.logs_dir, options.paths.run_dir}) {
    EXPECT_TRUE(os::make_directories(directory, 0700));
  }
  Config config;
  config.cgroups = false;
  config.ballast = Memory::mib(1);
  engine::State state(config.policy, os::boot_id().value());
  state.restored(JobId(1));
  auto remover = std::make_unique<Remover>();
  runner::Options run;
  run.attempts_dir = options.paths.attempts_dir();
  run.logs_dir = options.paths.logs_dir;
  run.shim = os::program_directory() + "/../bin/gflow-shim";
  run.boot_id = os::boot_id().value();
  run.use_cgroups = false;
  std::vector<NodeExecutor> executors;
  executors.push_back({runner::Runner::open(run).value(), {"lab1"}});
  auto store = store::Store::open(options.paths.database()).value();
  return Parts{.options = options,
               .config = config,
               .node = "lab1",
               .lock = {},
               .store = std::move(store),
               .source = devices::open_source("sim:1xH100", {}).value(),
               .slicer = devices::open_slicer("sim:1xH100", {}).value(),
               .indices = {},
               .remover = std::move(remover),
               .executors = std::move(executors),
               .owner_of = [](int) { return std::nullopt; },
               .wall_timer = os::WallTimer::create().value(),
               .state = std::move(state)};
}

Principal me() {
  const auto own = os::own_account();
  return {.name = own.name, .uid = own.uid};
}

api::SubmitRequest jobs(std::size_t count) {
  api::SubmitRequest request;
  api::SubmitRequest::Item item;
  item.spec.work_dir = "/";
  item.payload.argv = {"true"};
  request.items.assign(count, item);
  return request;
}

/// Jobs that can all start at once are launched bit by bit: whoever asks meanwhile is answered.
TEST(Loop, AnswersWhileItLaunches) {
  spdlog::set_level(spdlog::level::off);  // there is no log to write to
  const Place place;
  Loop loop(parts_in(place));
  ASSERT_TRUE(loop.begin());
  constexpr std::size_t kJobs = 60;
  int answered_meanwhile = 0;
  const auto all_over = [&] { return loop.state().count(Status::Finished) == kJobs; };
  const auto under_way = [&] { return loop.state().count(Status::Starting) > 0; };
  // Somebody else asks, again and again.
  std::function<void()> ask = [&] {
    loop.request(engine::event::Hold{{JobId(9999)}, me()}, [&](const auto& answer) {
      EXPECT_EQ(answer.error().code, Code::NotFound);
      if (!under_way()) return;
      ++answered_meanwhile;
      ask();
    });
  };
  std::shared_ptr<void> wait;
  std::function<void()> watch = [&] {
    if (all_over()) return loop.stop();
    wait = loop.on_change(loop.state().revision(), {}, std::chrono::minutes(2), watch);
  };
  bool acknowledged = false;
  loop.submit(jobs(kJobs), me(), [&](const auto& ids) {
    ASSERT_TRUE(ids) << ids.error().message;
    acknowledged = true;
    EXPECT_EQ(loop.state().count(Status::Starting), kJobs) << "launched before it was answered";
    ask();
    watch();
  });
  ASSERT_TRUE(loop.run());
  EXPECT_TRUE(acknowledged);
  EXPECT_EQ(loop.state().count(Status::Finished), kJobs);
  EXPECT_GT(answered_meanwhile, 2);
}

/// Says of attempts what the test wants said, by its descriptor.
class SaidToRun : public IdleExecutor {
 public:
  void launch(const LaunchOrder& order) override {
    launched.push_back(order);
    say(executor::Started{order.job, order.attempt, 77});
  }
  [[nodiscard]] std::vector<executor::Doubt> doubts() const override { return doubtful; }
  [[nodiscard]] int fd() const override { return wake_.get(); }
  [[nodiscard]] std::vector<executor::Report> poll() override {
    std::uint64_t count = 0;
    EXPECT_EQ(::read(wake_.get(), &count, sizeof count), ssize_t{sizeof count});
    return std::exchange(reports_, {});
  }

  void say(executor::Report report) {
    reports_.push_back(std::move(report));
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(wake_.get(), &one, sizeof one), ssize_t{sizeof one});
  }

  std::vector<LaunchOrder> launched;
  std::vector<executor::Doubt> doubtful;

 private:
  os::Fd wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::vector<executor::Report> reports_;
};

/// A node of another kind is an executor in the list: what is placed there goes to it, what it
/// reports comes in, what it doubts is shown.
TEST(Loop, RunsJobsOnANodeOfAnotherKind) {
  spdlog::set_level(spdlog::level::off);
  const Place place;
  Parts parts = parts_in(place);
  auto owned = std::make_unique<SaidToRun>();
  SaidToRun& there = *owned;
  parts.executors.push_back({std::move(owned), {"n2"}});
  Loop loop(std::move(parts));
  ASSERT_TRUE(loop.begin());
  loop.request(
      engine::event::NodesChanged{{machine_with_gpus("n2", 2, "NVIDIA A100", Memory::gib(40))}},
      {});
  std::shared_ptr<void> wait;
  int unchanged = 0;  // wakes without news: the first is the submission's own
  std::function<void()> watch = [&] {
    const std::uint64_t seen = loop.state().revision();
    wait = loop.on_change(seen, {}, std::chrono::minutes(1), [&, seen] {
      const Job* job = loop.state().find(JobId(1));
      if (status_of(*job) == Status::Running && there.doubtful.empty()) {
        there.doubtful = {{job->id, "the line is cut"}};
        const std::string doubt =
            "it is not known how job 1 stands, and it keeps what it holds until that is known: the "
            "line is cut";
        EXPECT_EQ(std::ranges::count(loop.daemon(OthersJobs::All).warnings, doubt), 1);
        EXPECT_EQ(loop.log_path(job->id), "") << "its log is not on this machine";
        there.say(executor::Gone{job->id, 1, {.reason = EndReason::Exited, .exit_code = 0}});
      }
      if (loop.state().revision() == seen) ++unchanged;
      if (is_ended(*job) || unchanged > 1) return loop.stop();
      watch();
    });
  };
  api::SubmitRequest two_gpus = jobs(1);
  two_gpus.items[0].spec.request.gpus = 2;  // this machine has one
  loop.submit(std::move(two_gpus), me(), [&](const auto& ids) {
    ASSERT_TRUE(ids) << ids.error().message;
    watch();
  });
  ASSERT_TRUE(loop.run());
  ASSERT_EQ(there.launched.size(), 1U);
  EXPECT_EQ(there.launched[0].node, "n2");
  EXPECT_EQ(there.launched[0].payload.argv, std::vector<std::string>{"true"});
  EXPECT_EQ(loop.state().count(Status::Finished), 1U);
}

/// Has a job that moves, and notes what of it is said.
class RunsWhatMoves : public SaidToRun {
 public:
  executor::Adoption adopt(JobId /*job*/,
                           int /*attempt*/,
                           const std::string& /*boot*/,
                           executor::Progress /*progress*/) override {
    return executor::StillRuns{77};
  }
  void move(JobId job, int /*attempt*/, const GpuMove& move, Memory most) override {
    said +=
        fmt::format("{} to {} with {}; ", job.value, move.to, most > Memory{} ? "room" : "none");
  }
  std::string said;
};

/// How much memory the GPUs have is not known until they were read.
TEST(Loop, SaysAMoveAgainWithTheMemoryThatItMayTake) {
  spdlog::set_level(spdlog::level::off);
  const Place place;
  Parts parts = parts_in(place);
  parts.source = devices::open_source("sim:2xH100", {}).value();
  auto owned = std::make_unique<RunsWhatMoves>();
  const RunsWhatMoves& executor = *owned;
  parts.executors.clear();
  parts.executors.push_back({std::move(owned), {"lab1"}});
  Running running;
  running.attempt.number = 1;
  running.attempt.boot_id = os::boot_id().value();
  running.attempt.allocation = {.node = "lab1", .gpus = {0, 1}};
  running.move = GpuMove{.from = 0, .to = 1, .from_uuid = "GPU-0", .to_uuid = "GPU-1"};
  Job job;
  job.id = JobId(1);
  job.attempts = 1;
  job.spec.user = record_of(me());
  job.spec.request.gpus = 1;
  job.state = running;
  parts.state = engine::State(parts.config.policy, os::boot_id().value());
  Payload payload;
  payload.argv = {"true"};
  store::Batch kept;
  kept.saves = {&job};
  kept.payloads = {{job.id, &payload, nullptr}};
  kept.next_id = JobId(2);
  ASSERT_TRUE(parts.store->commit(kept));
  parts.state.restore(std::move(job));
  parts.state.restored(JobId(2));
  Loop loop(std::move(parts));
  ASSERT_TRUE(loop.begin());
  EXPECT_EQ(executor.said, "1 to 1 with room; ");
}

/// One that is being read when it is told to read again, and is woken before all of it is there.
class SlowSource : public devices::Source {
 public:
  SlowSource() { machine_ = machine_with_gpus("lab1", 1, "NVIDIA H100", Memory::gib(80)); }
  [[nodiscard]] const Machine& machine() const override { return machine_; }
  [[nodiscard]] int fd() const override { return wake_.get(); }
  bool poll() override {
    std::uint64_t count = 0;
    EXPECT_EQ(::read(wake_.get(), &count, sizeof count), ssize_t{sizeof count});
    ++wakes_;
    if (wakes_ == 2) reads_ = false;  // before that there is a part of it
    if (wakes_ == 3) is_over();
    if (wakes_ < 3) ring();
    return false;
  }
  bool refresh() override {
    if (wakes_ == 0) ring();
    if (reads_) return false;
    ++begun;
    return reads_ = true;
  }

  std::function<void()> is_over;
  int begun = 0;  ///< readings, but for the one that is under way at the beginning

 private:
  void ring() {
    const std::uint64_t one = 1;
    EXPECT_EQ(::write(wake_.get(), &one, sizeof one), ssize_t{sizeof one});
  }

  Machine machine_;
  os::Fd wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  bool reads_ = true;
  int wakes_ = 0;
};

/// Has made a slice when it is asked first.
class MadeOne : public devices::Slicer {
 public:
  void order(const MadeSlice& /*slice*/) override {}
  [[nodiscard]] int fd() const override { return wake_.get(); }
  [[nodiscard]] std::vector<devices::SliceNews> poll() override {
    std::uint64_t count = 0;
    EXPECT_EQ(::read(wake_.get(), &count, sizeof count), ssize_t{sizeof count});
    return {{MadeSlice{.node = "lab1", .gpu = "GPU-0", .profile = "1g.10gb", .size = 1},
             slice_outcome::Made{"MIG-1", 1}}};
  }

 private:
  os::Fd wake_{::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
};

TEST(Loop, AReadingFollowsWhatWasCutWhileOneWasUnderWay) {
  spdlog::set_level(spdlog::level::off);
  const Place place;
  Parts parts = parts_in(place);
  auto owned = std::make_unique<SlowSource>();
  SlowSource& source = *owned;
  parts.source = std::move(owned);
  parts.slicer = std::make_unique<MadeOne>();
  Loop loop(std::move(parts));
  source.is_over = [&loop] { loop.stop(); };
  ASSERT_TRUE(loop.begin());
  ASSERT_TRUE(loop.run());
  EXPECT_EQ(source.begun, 1);
}

TEST(Loop, LetsGoOfWhoDoesNotWaitAnyMore) {
  boost::asio::io_context io;
  server::ChangeFeed feed(io);
  int woken = 0;
  auto first = feed.wait(0, {}, std::chrono::minutes(1), [&] { ++woken; });
  auto second = feed.wait(0, JobId(2), std::chrono::minutes(1), [&] { ++woken; });
  EXPECT_EQ(feed.waiting(), 2U);
  first.reset();
  EXPECT_EQ(feed.waiting(), 1U);
  feed.record(1, {JobId(1)});
  EXPECT_EQ(feed.waiting(), 1U) << "another job changed";
  feed.record(2, {JobId(2)});
  EXPECT_EQ(feed.waiting(), 0U);
  io.run();
  EXPECT_EQ(woken, 1);
  // What has changed already is not waited for.
  EXPECT_EQ(feed.wait(1, JobId(2), std::chrono::minutes(1), [&] { ++woken; }), nullptr);
  io.restart();
  io.run();
  EXPECT_EQ(woken, 2);
}

TEST(Loop, TellsAtOnceWhoAsksOfWhatWasBeforeIt) {
  boost::asio::io_context io;
  server::ChangeFeed feed(io);
  feed.record(5, {});  // the store had jobs
  int told = 0;
  EXPECT_EQ(feed.wait(0, JobId(2), std::chrono::minutes(1), [&] { ++told; }), nullptr);
  const auto waits = feed.wait(5, JobId(2), std::chrono::minutes(1), [&] { ++told; });
  io.poll();
  EXPECT_EQ(told, 1);
}

TEST(Remover, RemovesTreesAndFollowsNoLink) {
  const Place place;
  ASSERT_TRUE(os::make_directories(place.at("kept/deep"), 0700));
  ASSERT_TRUE(os::write_file(place.at("kept/deep/file"), "x"));
  std::string below = place.at("gone");
  for (int level = 0; level < 60; ++level) below += "/d";
  ASSERT_TRUE(os::make_directories(below, 0700));
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(os::write_file(place.at("gone/d/file" + std::to_string(i)), "x"));
  }
  std::filesystem::create_directory_symlink(place.at("kept"), place.at("gone/d/link"));
  std::filesystem::create_symlink(place.at("kept/deep/file"), place.at("gone/link"));
  ASSERT_TRUE(os::write_file(place.at("log"), "x"));
  std::filesystem::create_directory_symlink(place.at("kept"), place.at("a link"));
  Remover remover;
  for (const char* name : {"gone", "log", "a link", "not there"}) remover.remove(place.at(name));
  remover.drain();
  for (const char* name : {"gone", "log", "a link"}) EXPECT_FALSE(os::exists(place.at(name)));
  EXPECT_EQ(os::read_file(place.at("kept/deep/file")).value_or(""), "x");
}

}  // namespace
}  // namespace gflow::daemon
