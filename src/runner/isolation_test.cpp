// SPDX-License-Identifier: Apache-2.0
#include "runner/isolation.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <sstream>

#include "attempt/order.h"
#include "runner/attempt_files.h"
#include "runner/cgroup_layout.h"
#include "runner/device_filter.h"
#include "runner/spawn.h"
#include "runner/test_bench.h"

// Real jobs before real device nodes: /dev/zero is their GPU, /dev/full that of another job.
namespace gflow::runner {
namespace {

const DeviceNodes kZero = DeviceNodes::one(1, 5);
const DeviceFilter kNotFull = deny({{1, 5, 7}}, {kZero});
constexpr std::uint32_t kNobody = 65534;

class Isolation : public RunnerBench {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can have a device filter";
    options_.isolation = GetParam() ? GpuIsolation::Filter : GpuIsolation::Landlock;
    options_.needs_isolation = true;
    RunnerBench::SetUp();
  }
  [[nodiscard]] bool UsesCgroups() const override { return true; }

  [[nodiscard]] LaunchOrder kept(const std::string& text) const {
    LaunchOrder made = script(text);
    made.filter = kNotFull;
    return made;
  }
};
INSTANTIATE_TEST_SUITE_P(By, Isolation, ::testing::Bool(), [](const auto& info) {
  return info.param ? "filter" : "landlock";
});

class IsolationByFilter : public Isolation {};
INSTANTIATE_TEST_SUITE_P(By, IsolationByFilter, ::testing::Values(true), [](const auto&) {
  return "filter";
});

/// What a job tells of paths: which of them can be opened.
constexpr const char* kTry = R"(
can() { if (: < "$1") 2>/dev/null; then echo "yes $1"; else echo "no $1"; fi; }
)";

TEST_P(Isolation, AJobOpensItsOwnDeviceAndNoOther) {
  const std::string text = std::string(kTry) + R"(
for path in /dev/zero /dev/full /dev/null /dev/urandom /proc/self/root/dev/full \
            /dev/../dev/full /etc/passwd; do can $path; done
(: < /proc/$PPID/root/dev/full) 2>/dev/null || echo no through its supervisor
if (: > /dev/full) 2>/dev/null; then echo written; fi
setsid sh -c ': < /dev/full' 2>/dev/null || echo no in another session
ln -s /dev/full link && can link
)";
  const Outcome outcome = run(kept(text));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_EQ(log(),
            "yes /dev/zero\nno /dev/full\nyes /dev/null\nyes /dev/urandom\n"
            "no /proc/self/root/dev/full\nno /dev/../dev/full\nyes /etc/passwd\n"
            "no through its supervisor\nno in another session\nno link\n");
}

TEST_P(Isolation, AllElseIsAsEver) {
  const Outcome outcome = run(kept(R"(
mkdir one two && echo text > one/file
mv one/file two/other && ln two/other one/again && cat one/again
mv two one/two && cat one/two/other
exec 3<> /dev/ptmx && echo terminal
echo text > /dev/shm/gflow-isolation-$$ && rm /dev/shm/gflow-isolation-$$ && echo shared memory
)"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_EQ(log(), "text\ntext\nterminal\nshared memory\n");
}

/// Rules of Landlock are of inodes: what is allowed of a directory under one name is so under all.
TEST_P(Isolation, OtherMountsOfWhatIsAboveTheDevice) {
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const std::vector<std::pair<std::string, std::string>> mounts = {{"/", "/gflow-test-root"},
                                                                   {"/dev", "/gflow test dev"}};
  for (const auto& [what, where] : mounts) {
    ASSERT_EQ(::mkdir(where.c_str(), 0755), 0);
    ASSERT_EQ(::mount(what.c_str(), where.c_str(), nullptr, MS_BIND, nullptr), 0);
  }
  reopen();  // with a supervisor that stands by here
  const Outcome outcome =
      run(kept(std::string(kTry) + "can /dev/full; can /dev/zero; can '/gflow test dev/full'; "
                                   "can /gflow-test-root/etc/passwd"));
  for (const auto& [what, where] : mounts) {
    (void)::umount2(where.c_str(), MNT_DETACH);
    (void)::rmdir(where.c_str());
  }
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_EQ(log(),
            "no /dev/full\nyes /dev/zero\nno /gflow test dev/full\n"
            "yes /gflow-test-root/etc/passwd\n");
}

/// Access mode 3 of open(2): neither to read nor to write, to control the device.
TEST_P(Isolation, ToControlItIsToOpenIt) {
  EXPECT_EQ(run(kept(R"(python3 -c '
import fcntl, os
try:
    fcntl.ioctl(os.open("/dev/full", 3), 0x5401, b"0" * 64)
except OSError as error:
    print(error.strerror)
')"))
                .exit_code,
            0);
  EXPECT_NE(log(), "Inappropriate ioctl for device\n") << "the device was asked";
  EXPECT_NE(log(), "");
}

TEST_P(Isolation, WithoutAFilterItOpensAll) {
  EXPECT_EQ(run(script(std::string(kTry) + "can /dev/full")).exit_code, 0);
  EXPECT_EQ(log(), "yes /dev/full\n");
}

TEST_P(Isolation, OfAnotherUser) {
  LaunchOrder made = kept(std::string(kTry) + "can /dev/zero; can /dev/full; id -u");
  made.user = {kNobody, "nobody"};
  EXPECT_EQ(run(made).exit_code, 0);
  EXPECT_EQ(log(), "yes /dev/zero\nno /dev/full\n65534\n");
}

/// Whatever others have there: what is made in /dev/shm is shared memory of the job's.
TEST_P(Isolation, ADirectoryOfAnotherUserTakesNoSharedMemoryFromIt) {
  std::string others = "/dev/shm/gflow-isolation-XXXXXX";
  ASSERT_NE(::mkdtemp(others.data()), nullptr);
  LaunchOrder made = kept(std::string(kTry) + R"(
ls )" + others + R"( 2>/dev/null || echo it is private
mine=/dev/shm/gflow-isolation-of-$$
echo text > $mine && cat $mine && rm $mine
can /dev/full
)");
  made.user = {kNobody, "nobody"};
  const Outcome outcome = run(made);
  (void)::rmdir(others.c_str());
  EXPECT_EQ(outcome.exit_code, 0) << outcome.message;
  EXPECT_EQ(log(), "it is private\ntext\nno /dev/full\n");
}

TEST_P(Isolation, ItHoldsAndIsKnownAfterTheDaemonHasGone) {
  Fifo ask = fifo("ask");
  launch(kept(std::string(kTry) + "read -r word < " + ask.path() + "; can /dev/full"));
  (void)wait_started();
  const GpuIsolation by = GetParam() ? GpuIsolation::Filter : GpuIsolation::Landlock;
  EXPECT_EQ(runner_->gpu_isolation(JobId(7), 1), by);
  options_.isolation = GpuIsolation::None;
  reopen();
  EXPECT_TRUE(std::holds_alternative<StillRuns>(runner_->adopt(JobId(7), 1, options_.boot_id)));
  EXPECT_EQ(runner_->gpu_isolation(JobId(7), 1), by);
  ask.say("go");
  EXPECT_EQ(wait_gone().exit_code, 0);
  EXPECT_EQ(log(), "no /dev/full\n");
}

TEST_P(Isolation, TheNextJobIsNotKeptByWhatKeptTheLast) {
  EXPECT_EQ(run(kept("exit 0")).exit_code, 0);
  LaunchOrder other = script(std::string(kTry) + "can /dev/zero; can /dev/full");
  other.job = JobId(8);
  other.filter = DeviceFilter{.denied = {kZero}};
  EXPECT_EQ(run(other).exit_code, 0);
  EXPECT_EQ(log(JobId(8)), "no /dev/zero\nyes /dev/full\n");
}

/// Landlock leaves that to the rights of the user.
TEST_P(IsolationByFilter, DevicesOfOthersCannotBeMade) {
  EXPECT_NE(run(kept("mknod " + path("own") + " c 1 7")).exit_code, 0);
  EXPECT_FALSE(os::exists(path("own")));
}

TEST_P(IsolationByFilter, WhatCannotBeHadIsSaid) {
  options_.use_cgroups = false;
  const auto refused = Runner::open(options_);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("control groups are switched off"), std::string::npos);
  EXPECT_NE(refused.error().message.find("gpu_isolation"), std::string::npos);
  options_.needs_isolation = false;
  const auto without = Runner::open(options_);
  ASSERT_TRUE(without);
  EXPECT_EQ((*without)->isolates(""), GpuIsolation::None);
  EXPECT_EQ((*without)->enforcement("").gpu_isolation, "none: control groups are switched off");
}

/// Both kinds of control groups against what the filter says of each number; nodes that no driver
/// has are as good as others, as who may open them is asked first.
class Groups : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can have a device filter";
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
    layout_ = parse_cgroup_layout(os::read_file("/proc/self/mountinfo").value(),
                                  os::read_file("/proc/self/cgroup").value());
    if (GetParam()) layout_.devices.clear();
    if (!GetParam()) layout_.unified.clear();
    if ((GetParam() ? layout_.unified : layout_.devices).empty()) {
      GTEST_SKIP() << "there are no such control groups here";
    }
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string node(std::uint32_t its_major, std::uint32_t its_minor) const {
    const std::string path =
        directory_ + "/" + std::to_string(its_major) + "." + std::to_string(its_minor);
    (void)::mknod(path.c_str(), S_IFCHR | 0666, makedev(its_major, its_minor));
    return path;
  }

  std::string directory_ = "/tmp/gflow-isolation-XXXXXX";
  std::string shim_ = os::program_directory() + "/../bin/gflow-shim";
  CgroupLayout layout_;
};
INSTANTIATE_TEST_SUITE_P(Of, Groups, ::testing::Bool(), [](const auto& info) {
  return info.param ? "v2" : "v1";
});

TEST_P(Groups, KeepProcessesFromWhatTheFilterDenies) {
  const std::string name = "gflow-isolation-" + std::to_string(::getpid());
  const Cgroups cgroups(
      layout_,
      name,
      [this](const std::string& group) { return probe_cgroup(shim_, group); },
      [this](const std::string& group) { return probe_filter(shim_, group, kProbeDevice); });
  ASSERT_EQ(cgroups.device_filter().value(),
            GetParam() ? "cgroup v2 device filter (bpf)" : "cgroup v1 devices.deny");
  const DeviceFilter filter =
      deny({{195, 0, 247}, {226, 128, 130}, DeviceNodes::one(507, 4000)},
           {DeviceNodes::one(195, 3), {195, 7, 9}, DeviceNodes::one(226, 129)});
  attempt::Order order;
  order.launch_id = "0123456789abcdef";
  order.isolation = attempt::kByFilter;
  order.filter = filter;
  ASSERT_TRUE(cgroups.create("5.1", {}, order));
  // Of v1, only the tree of the controller keeps anybody from anything.
  const auto group = std::ranges::find_if(order.cgroups, [this](const std::string& one) {
    return one.starts_with(GetParam() ? layout_.unified : layout_.devices);
  });
  ASSERT_NE(group, order.cgroups.end());
  const std::pair<std::uint32_t, std::uint32_t> kNodes[] = {
      {195, 0},    {195, 2},    {195, 3},   {195, 4},   {195, 6},   {195, 7},   {195, 8},
      {195, 9},    {195, 10},   {195, 247}, {195, 248}, {195, 254}, {195, 255}, {194, 3},
      {196, 0},    {226, 127},  {226, 128}, {226, 129}, {226, 130}, {226, 131}, {507, 3999},
      {507, 4000}, {507, 4001}, {1, 5},     {1, 3}};
  for (const auto& [its_major, its_minor] : kNodes) {
    const bool is_kept = probe_filter(shim_, *group, node(its_major, its_minor)).has_value();
    EXPECT_EQ(is_kept, filter.denies(its_major, its_minor)) << its_major << ":" << its_minor;
  }
  Cgroups::remove(order.cgroups);
  cgroups.remove_empty_parents();
}

/// One that is told how a group was joined, and is not gone from it when that is tidied up.
TEST_P(Groups, WhoIsSlowToLeaveAGroupKeepsNoneFromBeingTried) {
  const std::string name = "gflow-isolation-" + std::to_string(::getpid());
  std::vector<pid_t> slow;
  const Cgroups cgroups(
      layout_,
      name,
      [&slow](const std::string& group) -> Result<void> {
        slow.push_back(::fork());
        if (slow.back() == 0) {
          while (true) (void)::pause();
        }
        const os::Fd procs = GF_TRY(os::open_file(group + "/cgroup.procs", O_WRONLY));
        return os::write_all(procs.get(), std::to_string(slow.back()));
      },
      [this](const std::string& group) { return probe_filter(shim_, group, kProbeDevice); });
  EXPECT_TRUE(cgroups.device_filter());
  for (const pid_t pid : slow) {
    (void)::kill(pid, SIGKILL);
    (void)::waitpid(pid, nullptr, 0);
  }
  const std::string parent = (GetParam() ? layout_.unified : layout_.devices) + "/" + name;
  const std::string left = parent + "/probe-" + std::to_string(::getpid());
  for (int tries = 0; tries < 100 && os::exists(left); ++tries) {  // it leaves a moment later
    cgroups.remove_others([](const std::string&) { return true; });
    (void)::poll(nullptr, 0, 1);
  }
  EXPECT_FALSE(os::exists(left));
  cgroups.remove_empty_parents();
  EXPECT_FALSE(os::exists(parent));
}

/// There denying one device of those that a line names is taken, and changes nothing.
TEST_P(Groups, AGroupOfV1ThatMayUseNamedDevicesOnlyCannotDenyOthers) {
  if (GetParam()) GTEST_SKIP() << "of v1 alone";
  const std::string outer = layout_.devices + "/gflow-isolation-" + std::to_string(::getpid());
  ASSERT_EQ(::mkdir(outer.c_str(), 0755), 0);
  const auto say = [&outer](const char* file, const char* text) {
    const os::Fd control = os::open_file(outer + "/" + file, O_WRONLY).value();
    ASSERT_TRUE(os::write_all(control.get(), text));
  };
  say("devices.deny", "a *:* rwm");
  for (const char* some : {"c 1:* rwm", "c 195:* rwm"}) say("devices.allow", some);
  layout_.devices = outer;
  const Cgroups cgroups(
      layout_,
      "gflow",
      [this](const std::string& group) { return probe_cgroup(shim_, group); },
      [this](const std::string& group) { return probe_filter(shim_, group, kProbeDevice); });
  ASSERT_FALSE(cgroups.device_filter());
  EXPECT_NE(cgroups.device_filter().error().message.find("cannot deny"), std::string::npos);
  cgroups.remove_empty_parents();
  Cgroups::remove({outer});
}

TEST_P(Groups, WhereTheKernelHeedsNoneItIsSaid) {
  const std::string name = "gflow-isolation-" + std::to_string(::getpid());
  const Cgroups cgroups(
      layout_,
      name,
      [this](const std::string& group) { return probe_cgroup(shim_, group); },
      [](const std::string&) -> Result<void> { return fail(Code::Failure, "it is open"); });
  ASSERT_FALSE(cgroups.device_filter());
  EXPECT_NE(cgroups.device_filter().error().message.find("it is open"), std::string::npos);
  attempt::Order order;
  order.launch_id = "0123456789abcdef";
  order.isolation = attempt::kByFilter;
  order.filter = kNotFull;
  EXPECT_FALSE(cgroups.create("5.2", {}, order)) << "a job that is to be kept does not run without";
  Cgroups::remove(order.cgroups);
  cgroups.remove_empty_parents();
}

}  // namespace
}  // namespace gflow::runner
