// SPDX-License-Identifier: Apache-2.0
// What is submitted to a daemon whose disk has no room for it.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "base/catalogue_for_tests.h"
#include "base/message_catalogue.h"
#include "core/machine_for_tests.h"
#include "daemon/shell.h"
#include "os/file.h"

namespace gflow::daemon {
namespace {

/// A file system of its own; only root can have one.
class Disk {
 public:
  explicit Disk(const std::string& size) : path_(testing::TempDir() + "/gflow-disk-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) {
      error_ = errno;
    } else if (::mount("gflow-test", path_.c_str(), "tmpfs", 0, ("size=" + size).c_str()) != 0) {
      error_ = errno;
    }
  }
  ~Disk() {
    if (error_ == 0) (void)::umount2(path_.c_str(), MNT_DETACH);
    (void)os::remove_tree(path_);  // what is left in /tmp harms nobody
  }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  [[nodiscard]] std::string trouble() const {
    return error_ == 0 ? "" : std::string("cannot mount a tmpfs: ") + std::strerror(error_);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  int error_ = 0;
};

/// Takes every byte that is left.
void fill(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "we");
  ASSERT_NE(file, nullptr);
  (void)std::setvbuf(file, nullptr, _IONBF, 0);
  const std::string block(4096, 'x');
  while (std::fwrite(block.data(), 1, block.size(), file) == block.size()) {
  }
  (void)std::fclose(file);
}

/// Notes what is launched, and runs nothing.
class Notes : public Dispatcher {
 public:
  std::vector<JobId> launched;

  void launch(const LaunchOrder& order) override { launched.push_back(order.job); }
  executor::Adoption adopt(const Job& /*job*/) override { return executor::NeverRan{}; }
  void stop(const Job& /*job*/) override {}
  void suspend(const Job& /*job*/) override {}
  void resume(const Job& /*job*/) override {}
  void move(const Job& /*job*/) override {}
  void signal(const Job& /*job*/, int /*number*/) override {}
  void change_limit(const Job& /*job*/) override {}
  void cut(const MadeSlice& /*slice*/) override {}
  void forget_attempt(JobId /*job*/, int /*attempt*/) override {}
  void forget_job(JobId /*job*/) override {}
  [[nodiscard]] std::string largest_log() const override { return ""; }
};

/// A daemon without sockets on a machine with two GPUs.
class OnDisk {
 public:
  explicit OnDisk(const Disk& disk, engine::Policy policy = {})
      : policy_(std::move(policy)),
        path_(disk.file("gflow.db")),
        ballast_(disk.file("ballast"), Memory::mib(1)) {
    start();
  }

  /// Posts a submission of one job with a script of this size; answers[name] is what came of it.
  void submit(const std::string& name,
              std::size_t size,
              bool hold = false,
              std::string key = "",
              std::size_t tasks = 1,
              std::optional<TaskRange> array = {}) {
    const Principal alice{.name = "alice", .uid = 1000, .projects = {}};
    JobSpec spec;
    spec.user = record_of(alice);
    spec.request.gpus = 1;
    spec.hold = hold;
    Payload payload;
    payload.argv = {"true"};
    payload.script = std::string(size, 'x');
    api::SubmitRequest request;
    request.items.push_back({spec, std::move(payload), {}, {}, array});
    // The others run what the first one runs.
    for (std::size_t i = 1; i < tasks; ++i) request.items.push_back({spec, {}, {}, 0});
    request.idempotency_key = std::move(key);
    shell_->submit(std::move(request), alice, [this, name](auto ids) { answers[name] = ids; });
  }
  void submit_if(const std::string& name, std::string key, server::SubmitIf condition) {
    const Principal alice{.name = "alice", .uid = 1000, .projects = {}};
    Payload payload;
    payload.argv = {"true"};
    api::SubmitRequest request;
    request.items.push_back({{.user = record_of(alice)}, std::move(payload), {}, {}, {}});
    request.idempotency_key = std::move(key);
    shell_->submit(
        std::move(request),
        alice,
        [this, name](auto ids) { answers[name] = ids; },
        std::move(condition));
  }
  void post(const std::string& name, engine::Event event) {
    shell_->post(std::move(event), [this, name](auto ids) { answers[name] = ids; });
  }
  void post(engine::Event event) { shell_->post(std::move(event)); }
  void tick() {
    now_.mono += std::chrono::seconds(1);
    now_.wall += std::chrono::seconds(1);
    const auto ticked = shell_->tick(now_);
    ASSERT_TRUE(ticked) << ticked.error().message;
    while (shell_->has_launches()) shell_->launch_next();
    ASSERT_EQ(state_->check(), "");
  }
  void restart() {
    shell_.reset();
    store_.reset();
    start();
  }
  [[nodiscard]] JobId id_of(const std::string& name) { return answers.at(name).value().front(); }
  [[nodiscard]] std::string said(const std::string& name) const {
    const auto& answer = answers.at(name);
    return answer ? "" : answer.error().message;
  }
  [[nodiscard]] const Job* find(JobId id) const { return state_->find(id); }
  [[nodiscard]] std::optional<Status> status(JobId id) const {
    const Job* job = find(id);
    return job == nullptr ? std::nullopt : std::optional(status_of(*job));
  }
  [[nodiscard]] std::size_t jobs() const { return state_->list({}).size(); }
  [[nodiscard]] Shell& shell() { return *shell_; }
  [[nodiscard]] store::Ballast& ballast() { return ballast_; }

  Notes notes;
  std::map<std::string, Result<std::vector<JobId>>> answers;

 private:
  void start() {
    store_ = store::Store::open(path_).value();
    state_.emplace(policy_, "boot");
    auto loaded = store_->load().value();
    for (Job& job : loaded.jobs) state_->restore(std::move(job));
    for (JobRange& range : loaded.ranges) state_->restore(std::move(range));
    state_->restored(loaded.next_id);
    shell_.emplace(*state_, *store_, notes, &ballast_);
    Machine machine = machine_with_gpus("n1", 2, "NVIDIA GeForce RTX 3090", Memory::gib(24));
    machine.cpus = 4;
    shell_->post(engine::event::NodesChanged{{machine}});
    tick();
  }

  engine::Policy policy_;
  std::string path_;
  store::Ballast ballast_;
  std::unique_ptr<store::Store> store_;
  std::optional<engine::State> state_;
  std::optional<Shell> shell_;
  Now now_{WallTime(std::chrono::hours(500'000)), MonoTime(std::chrono::hours(1))};
};

TEST(ShellOnASmallDisk, RefusesWhatDoesNotFitAndWritesTheRest) {
  const Disk disk("6m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk);
  daemon.submit("ranges", 10);
  daemon.submit("waits", 10, true);
  daemon.tick();
  daemon.post(engine::event::AttemptStarted{daemon.id_of("ranges"), 1, 77});
  daemon.tick();
  ASSERT_TRUE(daemon.ballast().held());

  constexpr std::size_t kTooMuch = 8UL << 20;
  daemon.submit("before", 10);
  daemon.submit("too much", kTooMuch, false, "key");
  daemon.submit("again", kTooMuch, false, "key");
  daemon.post(
      engine::event::AttemptEnded{daemon.id_of("ranges"), 1, {.reason = EndReason::Exited}});
  daemon.post("cancel", engine::event::Cancel{{daemon.id_of("waits")}, system_principal()});
  daemon.submit("after", 10);
  daemon.tick();
  EXPECT_NE(daemon.said("too much").find("does not fit"), std::string::npos)
      << daemon.said("too much");
  EXPECT_EQ(daemon.answers.at("too much").error().code, Code::Exhausted);
  EXPECT_EQ(daemon.said("again"), daemon.said("too much"));
  EXPECT_EQ(daemon.said("cancel"), "");
  EXPECT_FALSE(daemon.shell().disk_is_full());
  EXPECT_TRUE(daemon.ballast().held());
  EXPECT_EQ(daemon.jobs(), 4U);
  const std::vector launched = {
      daemon.id_of("ranges"), daemon.id_of("before"), daemon.id_of("after")};
  EXPECT_EQ(daemon.notes.launched, launched);

  daemon.restart();
  EXPECT_EQ(daemon.jobs(), 4U);
  EXPECT_EQ(daemon.status(daemon.id_of("ranges")), Status::Finished);
  EXPECT_EQ(daemon.status(daemon.id_of("waits")), Status::Cancelled);
  EXPECT_EQ(daemon.status(daemon.id_of("before")), Status::Starting);
  EXPECT_EQ(daemon.status(daemon.id_of("after")), Status::Starting);
  // What was refused was not submitted: the same key is as new.
  daemon.submit("smaller", 10, true, "key");
  daemon.tick();
  EXPECT_EQ(daemon.said("smaller"), "");
}

TEST(ShellOnASmallDisk, WhatIsNotTakenIsNeitherKeptNorRemembered) {
  const Disk disk("6m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk);
  const auto no = [] { return fail(Code::Exhausted, "it would wait"); };
  daemon.submit_if("before", "key", {.before = no, .after = {}});
  daemon.submit_if("after", "key", {.before = {}, .after = [no](JobId /*first*/) { return no(); }});
  daemon.tick();
  for (const char* name : {"before", "after"}) EXPECT_EQ(daemon.said(name), "it would wait");
  EXPECT_EQ(daemon.jobs(), 0U);
  EXPECT_TRUE(daemon.notes.launched.empty());
  daemon.restart();
  EXPECT_EQ(daemon.jobs(), 0U);
  daemon.submit_if("taken", "key", {});
  daemon.tick();
  ASSERT_EQ(daemon.said("taken"), "");
  // What was taken is not asked again.
  daemon.submit_if("again", "key", {.before = no, .after = {}});
  daemon.tick();
  EXPECT_EQ(daemon.answers.at("again"), daemon.answers.at("taken"));
}

TEST(ShellOnASmallDisk, AnArrayThatDoesNotFitLeavesNothing) {
  const Disk disk("6m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk);
  daemon.submit("too much", 8UL << 20, false, "key", 1, TaskRange{.count = 5});
  daemon.submit("fits", 10, false, "", 1, TaskRange{.count = 4});
  daemon.tick();
  EXPECT_EQ(daemon.answers.at("too much").error().code, Code::Exhausted);
  const std::vector<JobId> fits = daemon.answers.at("fits").value();
  EXPECT_EQ(fits.size(), 4U);
  EXPECT_EQ(daemon.jobs(), 4U);
  EXPECT_EQ(daemon.notes.launched, (std::vector{fits[0], fits[1]}));
  daemon.restart();
  EXPECT_EQ(daemon.jobs(), 4U);
  EXPECT_EQ(daemon.status(fits[3]), Status::Queued);
}

TEST(ShellOnASmallDisk, CancellingMakesRoom) {
  const Disk disk("16m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk);
  constexpr std::size_t kScript = 2UL << 20;
  std::vector<JobId> held;
  for (int i = 0; i < 20; ++i) {
    daemon.submit("big", kScript, true);
    daemon.tick();
    if (!daemon.said("big").empty()) break;
    held.push_back(daemon.id_of("big"));
  }
  EXPECT_NE(daemon.said("big").find("the jobs of alice that have not ended hold"),
            std::string::npos)
      << daemon.said("big");
  ASSERT_GT(held.size(), 2U);
  daemon.post("cancel", engine::event::Cancel{held, system_principal()});
  // A step of what was set aside each time, if it has to be.
  for (int i = 0; i < store::Ballast::kSteps && !daemon.answers.contains("cancel"); ++i) {
    daemon.tick();
  }
  ASSERT_TRUE(daemon.answers.contains("cancel"));
  ASSERT_EQ(daemon.said("cancel"), "");
  // The first ones may still be refused: what was set aside comes first, a step each time.
  for (int i = 0; i < store::Ballast::kSteps; ++i) {
    daemon.submit("first", kScript, true);
    daemon.tick();
    if (daemon.said("first").empty()) break;
  }
  EXPECT_EQ(daemon.said("first"), "");
  for (std::size_t i = 0; i < held.size() / 2; ++i) {
    daemon.submit("again", kScript, true);
    daemon.tick();
    EXPECT_EQ(daemon.said("again"), "") << i << " of " << held.size();
  }
  EXPECT_TRUE(daemon.ballast().held());
}

TEST(ShellOnASmallDisk, AChangeThatCannotBeWrittenYetIsNotWaitedFor) {
  const Disk disk("16m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk);
  std::vector<JobId> held;
  for (int i = 0; i < 1'000; ++i) {
    daemon.submit("job", 10, true);
    daemon.tick();
    held.push_back(daemon.id_of("job"));
  }
  daemon.restart();  // which leaves no space in the store to be used again
  ASSERT_TRUE(daemon.ballast().held());
  fill(disk.file("filler"));
  engine::event::Update urgent{held, system_principal(), {}};
  urgent.changes.set(&JobSpec::priority, 9);
  urgent.changes.set(&JobSpec::name, std::string(128, 'x'));
  const std::string bytes =
      catalogue_bytes({{"", "\nLanguage: de\n"},
                       {"this change is not written yet and is lost if gflowd ends before; it is "
                        "tried again every second: {}",
                        "noch nicht geschrieben: {}"}});
  const auto german = MessageCatalogue::read(bytes);
  ASSERT_TRUE(german);
  {
    // More than a step of what was set aside.
    const MessagesOfThread language(&*german);
    daemon.post("update", std::move(urgent));
  }
  daemon.tick();
  ASSERT_TRUE(daemon.shell().disk_is_full());
  ASSERT_TRUE(daemon.answers.contains("update"));
  EXPECT_EQ(daemon.answers.at("update").error().code, Code::Exhausted);
  EXPECT_NE(daemon.said("update").find("noch nicht geschrieben: the disk"), std::string::npos)
      << daemon.said("update") << ": in the language of who asked";

  ASSERT_TRUE(std::filesystem::remove(disk.file("filler")));
  daemon.tick();
  EXPECT_FALSE(daemon.shell().disk_is_full());
  EXPECT_FALSE(daemon.shell().wants_room()) << "though nobody submits anything";
  daemon.restart();
  EXPECT_EQ(daemon.find(held.back())->spec.priority, 9);
}

TEST(ShellOnASmallDisk, CountsWhatAUserStoresOverRestarts) {
  const Disk disk("16m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk, {.max_stored_per_user = Memory::mib(1)});
  constexpr std::size_t kScript = 700UL << 10;
  daemon.submit("first", kScript, true);
  daemon.tick();
  ASSERT_EQ(daemon.said("first"), "");
  daemon.restart();
  daemon.submit("second", kScript, true);
  daemon.tick();
  EXPECT_NE(daemon.said("second").find("limits.max_stored_per_user"), std::string::npos)
      << daemon.said("second");
  daemon.post(engine::event::Cancel{{daemon.id_of("first")}, system_principal()});
  daemon.submit("third", kScript, true);
  daemon.tick();
  EXPECT_EQ(daemon.said("third"), "");
}

TEST(ShellOnASmallDisk, CountsWhatTasksShareOnce) {
  const Disk disk("16m");
  if (!disk.trouble().empty()) GTEST_SKIP() << disk.trouble();
  OnDisk daemon(disk, {.max_stored_per_user = Memory::mib(1)});
  constexpr std::size_t kScript = 700UL << 10;
  daemon.submit("array", kScript, true, "", 100);
  daemon.tick();
  EXPECT_EQ(daemon.said("array"), "");
  daemon.restart();
  daemon.submit("second", kScript, true);
  daemon.tick();
  EXPECT_NE(daemon.said("second").find("limits.max_stored_per_user"), std::string::npos)
      << daemon.said("second");
}

}  // namespace
}  // namespace gflow::daemon
