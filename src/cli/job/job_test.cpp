// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <stdlib.h>

#include <array>
#include <csignal>

#include "cli/job/job_text.h"
#include "cli/job/log.h"
#include "cli/job/signals.h"
#include "cli/job/wait.h"
#include "core/gpu_request.h"
#include "os/file.h"

namespace gflow::cli {
namespace {

using api::view_of;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const WallTime kNoon = *parse_rfc3339("2026-03-01T12:00:00Z");

api::JobView pending() {
  api::JobView job;
  job.id = JobId(42);
  job.spec.name = "ddp";
  job.spec.request.gpus = 4;
  job.status = Status::Queued;
  job.submitted = kNoon - minutes(38);
  return job;
}

/// What `gjob why` says to one who asks.
std::string why(const api::JobView& job, const api::Asker& asker = {}) {
  api::Explanation explanation{.job = job, .expected_start = api::begin_of(job, kNoon)};
  explanation.suggestions = api::suggestions_for(job, asker);
  return why_text(explanation, {kNoon, seconds(0)});
}

TEST(Why, ATimeOfSubmissionThatIsToComeIsNotSaidToBeAhead) {
  api::JobView job = pending();
  job.submitted = kNoon + hours(2);
  EXPECT_TRUE(why(job).starts_with("Job 42 (ddp) has been waiting since 14:00.\n")) << why(job);
}

TEST(Why, NamesEveryBlockerHolderAndWayOut) {
  api::JobView job = pending();
  job.blockers = {
      view_of(blocker::Gpus{
          .need = 4,
          .available = 1,
          .holders = {{JobId(31), "alice", {0, 1}, kNoon + hours(6)}, {JobId(29), "bob", {2}, {}}},
          .unusable = {{.gpu = 4, .processes = {{48121, "dave", "python", {}}}}}}),
      view_of(blocker::Priority{JobId(40), kNoon + minutes(5)}),
  };
  EXPECT_EQ(why(job, {.ahead = 10}),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  Resources: Need 4 GPUs, only 1 available; GPU 4 used outside gflow\n"
            "       job 31 of alice has GPU 0,1, ends at the latest 18:00 (in 6h)\n"
            "       job 29 of bob has GPU 2, has no time limit\n"
            "       GPU 4 is used outside gflow: pid 48121 (dave) python\n"
            "   2.  Priority: behind job 40\n"
            "       job 40 should start 12:05 (in 5m)\n"
            "\n"
            "What would start it sooner:\n"
            "  gjob update 42 --gpus 1             as many as are free now\n"
            "  gjob update 42 --priority 11        moves it ahead of that job\n"
            "  gjob update 42 --time-limit 1h      a job with a time limit may be backfilled\n");
}

TEST(Why, NamesPodsAndWhatTheirSchedulerSays) {
  api::Explanation explanation{.job = pending(), .told = "0/4 nodes are available."};
  const JobNames names = {{JobId(42), "default/ddp"}, {JobId(31), "default/a"}};
  const auto said = [&] { return why_text(explanation, {kNoon, seconds(0)}, names); };
  EXPECT_EQ(said(),
            "Pod default/ddp has been waiting since 11:22 (38m ago).\n"
            "\n"
            "The scheduler of the cluster says: 0/4 nodes are available.\n");
  explanation.job.blockers = {view_of(
      blocker::Gpus{.need = 4, .available = 2, .holders = {{JobId(31), "default", {0, 1}, {}}}})};
  EXPECT_TRUE(said().contains("       pod default/a has GPU 0,1, has no time limit\n")) << said();
}

TEST(Why, AdvisesWhatTheAskerMayDoAndWhatHelps) {
  api::JobView job = pending();
  job.blockers = {view_of(blocker::Priority{JobId(40), {}})};
  const auto said = [&job](const api::Asker& asker) { return why(job, asker); };
  const auto raises = [&said](const api::Asker& asker) {
    return said(asker).find("--priority") != std::string::npos;
  };
  EXPECT_TRUE(raises({.max_priority = 51, .ahead = 50}));
  EXPECT_NE(said({.ahead = 50}).find("gjob update 42 --priority 51"), std::string::npos);
  EXPECT_FALSE(raises({.max_priority = 50, .ahead = 50})) << "it may not go over it";
  EXPECT_FALSE(raises({.ahead = kMaxPriority})) << "nothing is higher";
  EXPECT_FALSE(raises({.ahead = 5})) << "it is higher already";
  EXPECT_FALSE(raises({})) << "nobody knows how high";
  EXPECT_EQ(said({.may_change = false, .ahead = 50}).find("gjob update"), std::string::npos);
}

TEST(Why, SaysByHowMuchAPartOfAGpuMisses) {
  api::JobView job = pending();
  apply(*parse_gpu_request("20G,0.75(T4)"), job.spec.request);
  job.blockers = {
      view_of(blocker::GpuMemory{.need = Memory::gib(20),
                                 .missing = Memory::gib(6),
                                 .holders = {{JobId(31), "alice", {0}, {}}}}),
      view_of(blocker::GpuShare{.need = Share::percent(75), .missing = Share::percent(25)}),
  };
  EXPECT_EQ(why(job),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  GpuMemory: Need 20G free on a GPU, 6G short\n"
            "       job 31 of alice has GPU 0, has no time limit\n"
            "   2.  Resources: Need 0.75 of a GPU, 0.25 short\n"
            "\n"
            "What would start it sooner:\n"
            "  gjob update 42 --gpu-memory 14336M  as much as can be reserved now\n"
            "  gjob update 42 --gpus '20G,0.5(T4)'  as much of one as is free now\n");
}

TEST(Why, NamesTheJobsThatKeepItsUserAtTheLimit) {
  api::JobView job = pending();
  blocker::GpuLimit limit{Share::percent(400),
                          Share::percent(250),
                          Share::percent(600),
                          {{JobId(31), "alice", {0, 1}, kNoon + hours(6)}},
                          kNoon + hours(6)};
  job.blockers = {view_of(limit)};
  EXPECT_EQ(why(job),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  GpuLimit: Need 4 GPUs, its user holds 2.5 and may hold 6 at once\n"
            "       job 31 of alice has GPU 0,1, ends at the latest 18:00 (in 6h)\n"
            "\n"
            "What would start it sooner:\n"
            "  gjob update 42 --gpus 3             as many as its user may still hold\n");
  job.blockers.push_back(view_of(blocker::Gpus{.need = 4, .available = 1}));
  EXPECT_NE(why(job).find("--gpus 1 "), std::string::npos) << "no more than are free";
  job.spec.request.nodes = 4;
  EXPECT_EQ(why(job).find("--gpus"), std::string::npos) << "not one on each node";
}

TEST(Why, KeepsTheKindWhenItAdvisesFewer) {
  api::JobView job = pending();
  apply(*parse_gpu_request("4(V100)"), job.spec.request);
  job.blockers = {view_of(blocker::Gpus{.need = 4, .available = 2, .kind = "V100"})};
  EXPECT_NE(why(job).find("gjob update 42 --gpus '2(V100)'"), std::string::npos);
}

// The kind of a blocker is not read out of its text: no name may change what is advised.
TEST(Why, AdvisesByKindWhateverTheTextSays) {
  api::JobView job = pending();
  job.blockers = {view_of(blocker::Gpus{.need = 4, .available = 2, .kind = "CPU memory node"}),
                  view_of(blocker::GroupLimit{.group = "of a GPU, ", .limit = 1})};
  const std::string text = why(job);
  EXPECT_NE(text.find("gjob update 42 --gpus 2"), std::string::npos) << text;
}

TEST(Why, KnowsDrainedGpusNodesAndJobsThatStandStill) {
  api::JobView job = pending();
  job.blockers = {
      view_of(blocker::Gpus{
          .need = 4,
          .available = 0,
          .unusable = {{.gpu = 3, .drained = true, .drained_reason = "fan is loud"}}}),
      view_of(blocker::Nodes{.need = 4, .available = 2}),
      view_of(blocker::Preemption{{JobId(5), JobId(7)}}),
  };
  EXPECT_EQ(why(job),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  Resources: GPU 3 drained\n"
            "       GPU 3 is drained: fan is loud\n"
            "   2.  Resources: Need 4 nodes, only 2 available\n"
            "   3.  Preemption: waiting for jobs 5,7\n");
  job.status = Status::Suspended;
  job.blockers.erase(job.blockers.begin(), job.blockers.end() - 1);
  EXPECT_EQ(why(job),
            "Job 42 (ddp) is suspended and keeps its memory.\n"
            "\n"
            "Blocked by:\n"
            "   1.  Preemption: waiting for jobs 5,7\n");
  job.status = Status::Starting;
  EXPECT_EQ(
      why(job),
      "Job 42 (ddp) is starting: it has its resources, its first process does not run yet.\n");
  job.status = Status::Completing;
  EXPECT_EQ(why(job), "Job 42 (ddp) is being stopped.\n");
}

TEST(Why, ShowsNumbersWhereTheTextHasNone) {
  api::JobView job = pending();
  job.blockers = {view_of(blocker::Gpus{.need = 4, .available = 0, .holders = {}, .unusable = {}})};
  EXPECT_EQ(why(job),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  Resources\n"
            "       Need 4 GPUs, none available\n");
}

TEST(Why, KnowsHeldAndLaterJobs) {
  api::JobView job = pending();
  job.status = Status::Hold;
  job.blockers = {view_of(blocker::OnHold{}), view_of(blocker::BeginTime{kNoon + hours(1)})};
  EXPECT_EQ(why(job),
            "Job 42 (ddp) has been waiting since 11:22 (38m ago).\n"
            "\n"
            "Blocked by:\n"
            "   1.  JobHeldUser\n"
            "   2.  BeginTime: 13:00 (in 1h)\n"
            "\n"
            "What would start it sooner:\n"
            "  gjob release 42                     returns it to the queue\n"
            "  gjob release 42 --at now+0          clears the begin time\n");
}

TEST(Why, SaysWhatAJobThatDoesNotWaitDoes) {
  api::JobView job = pending();
  job.status = Status::Running;
  job.gpu_indices = {0, 1};
  EXPECT_EQ(why(job), "Job 42 (ddp) runs on GPU 0,1.\n");
  job.status = Status::Failed;
  job.started = kNoon;
  job.run_time = seconds(200);
  job.outcome = Outcome{.reason = EndReason::Exited, .exit_code = 1};
  EXPECT_EQ(why(job),
            "Job 42 (ddp) is not waiting, it has ended: exited with code 1 after 3m20s.\n");
}

TEST(JobText, TellsWhatIsSpecialAboutItsGpus) {
  api::JobView job = pending();
  apply(*parse_gpu_request("1(A100),16G"), job.spec.request);
  job.spec.request.mode = GpuMode::TimeSlice;
  job.spec.preemption = Preemption::Requeue;
  const std::string text = job_text({.job = job}, {}, rfc3339, Painter());
  for (const std::string_view line :
       {"  Requested     1 A100 GPU time-sliced with others, 16G of memory on it\n",
        "  GPU request   1(A100),16G --shared\n",
        "  Preemption    stopped and requeued\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(JobText, TellsHowItIsPreempted) {
  const struct {
    Preemption preemption;
    int signal;
    std::string_view line;
  } rows[] = {
      {Preemption::Requeue, 0, "  Preemption    stopped and requeued\n"},
      {Preemption::Requeue,
       SIGUSR1,
       "  Preemption    sent signal 10 (SIGUSR1), stopped and requeued\n"},
      {Preemption::Suspend, 0, "  Preemption    suspended in memory\n"},
      {Preemption::None, 0, "  Priority      10\n  Submitted "},
  };
  for (const auto& row : rows) {
    api::JobView job = pending();
    job.spec.preemption = row.preemption;
    job.spec.preempt_signal = row.signal;
    const std::string text = job_text({.job = job}, {}, rfc3339, Painter());
    EXPECT_NE(text.find(row.line), std::string::npos) << text;
  }
}

TEST(JobText, TellsWhatItHasWhereAndWhy) {
  constexpr std::string_view kRing = "ring of 48 GB/s, the best of this machine";
  const struct {
    api::JobView has;
    std::string_view lines;
  } rows[] = {
      {{.gpu_indices = {0, 1}}, "  Allocated     GPU 0,1\n  Time limit "},
      {{.gpu_indices = {0, 1}, .cpu_indices = {0, 1, 2, 8}, .placed_because = std::string(kRing)},
       "  Allocated     GPU 0,1 and CPU 0-2,8\n"
       "  Chosen for    ring of 48 GB/s, the best of this machine\n"},
      {{.ended = kNoon, .cpu_indices = {3}}, "  Allocated     CPU 3\n"},
      {{.node = "n1", .gpu_indices = {0}}, "  Node          n1\n  Allocated     GPU 0\n"},
      {{.node = "n1", .gpu_indices = {0}, .peers = {{"n2", {2, 3}, {4, 5}}, {"n3", {}, {}}}},
       "  Allocated     n1: GPU 0; n2: GPU 2,3 and CPU 4-5; n3\n"},
      {{}, "  Requested     4 GPUs\n  Time limit "},
  };
  for (const auto& row : rows) {
    api::JobView job = row.has;
    job.spec.request.gpus = 4;
    const std::string text = job_text({.job = job}, {}, rfc3339, Painter());
    EXPECT_NE(text.find(row.lines), std::string::npos) << text;
  }
}

TEST(JobText, TellsEveryFactOfAJob) {
  api::JobView job = pending();
  job.status = Status::Running;
  job.spec.user.name = "alice";
  job.spec.command = "python train.py";
  job.spec.work_dir = "/home/alice";
  job.spec.time_limit = hours(4);
  job.spec.request.memory = Memory::gib(16);
  job.gpu_indices = {0, 1, 2, 3};
  job.cpu_indices = {0, 1};
  job.started = kNoon;
  job.run_time = seconds(61);
  job.attempt = 1;
  job.pid = 4711;
  job.log_path = "/logs/42.log";
  api::DaemonView daemon;
  daemon.enforcement_kill = "cgroup.kill";
  daemon.enforcement_memory = "cgroup v2 memory.max";
  daemon.enforcement_binding = "sched_setaffinity";
  EXPECT_EQ(job_text({.job = job}, daemon, rfc3339, Painter()),
            "Job 42: ddp\n"
            "  State         Running (R)\n"
            "  User          alice\n"
            "  Requested     4 GPUs, 16G memory\n"
            "  Allocated     GPU 0,1,2,3 and CPU 0-1\n"
            "  Time limit    4h\n"
            "  Grace         30s\n"
            "  Priority      10\n"
            "  Submitted     2026-03-01T11:22:00.000Z\n"
            "  Started       2026-03-01T12:00:00.000Z\n"
            "  Run time      00:01:01\n"
            "  Attempt       1\n"
            "  Process       4711\n"
            "  Command       python train.py\n"
            "  Directory     /home/alice\n"
            "  Log           /logs/42.log\n"
            "  Stopped by    cgroup.kill\n"
            "  Memory limit  cgroup v2 memory.max\n"
            "  CPU binding   sched_setaffinity\n");
}

TEST(Wait, PassesTheCodeOfTheJob) {
  struct Case {
    EndReason reason;
    int exit_code;
    int signal;
    int want;
  };
  constexpr Case kCases[] = {
      {EndReason::Exited, 0, 0, 0},
      {EndReason::Exited, 3, 0, 3},
      {EndReason::Signalled, 0, SIGKILL, 137},
      {EndReason::OutOfMemory, 0, 0, 137},
      {EndReason::TimeLimit, 0, SIGTERM, kNoExitCode},
      {EndReason::Cancelled, 0, 0, kNoExitCode},
      {EndReason::LaunchFailed, 0, 0, kNoExitCode},
  };
  std::vector<api::JobView> all;
  for (const Case& c : kCases) {
    api::JobView job;
    job.outcome = Outcome{.reason = c.reason, .exit_code = c.exit_code, .signal = c.signal};
    EXPECT_EQ(exit_code_of(job), c.want) << end_reason_name(c.reason);
    all.push_back(job);
  }
  EXPECT_EQ(exit_code_of(all), 137);
}

TEST(Signals, AreReadByNameAndNumber) {
  for (const std::string_view text : {"INT", "SIGINT", "int", "sigint", "2"}) {
    EXPECT_EQ(parse_signal(text), SIGINT) << text;
  }
  for (const std::string_view text : {"", "0", "-9", "99", "SIGFOO", "9x"}) {
    EXPECT_EQ(parse_signal(text).error().code, Code::Usage) << text;
  }
}

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content) {
    std::string path = "/tmp/gflow-log-XXXXXX";
    const os::Fd file(::mkstemp(path.data()));
    path_ = path;
    EXPECT_TRUE(os::write_all(file.get(), content));
  }
  ~TemporaryFile() { (void)os::remove_tree(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(Log, FindsItsLastLines) {
  struct Case {
    std::string_view content;
    std::size_t lines;
    std::size_t want;
  };
  constexpr Case kCases[] = {
      {"", 3, 0},
      {"a\nb\nc\n", 0, 6},
      {"a\nb\nc\n", 1, 4},
      {"a\nb\nc\n", 2, 2},
      {"a\nb\nc\n", 9, 0},
      {"a\nb\nc", 1, 4},
      {"\n\n\n", 2, 1},
      {"abc", 1, 0},
  };
  for (const Case& c : kCases) {
    const TemporaryFile file(c.content);
    EXPECT_EQ(*start_of_last_lines(file.path(), c.lines), c.want) << c.content << " " << c.lines;
  }
  std::string long_text(200'000, 'x');
  long_text[100] = '\n';
  const TemporaryFile file(long_text);
  EXPECT_EQ(*start_of_last_lines(file.path(), 1), 101U);
}

}  // namespace
}  // namespace gflow::cli
