// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/gpu_limits.h"
#include "core/job.h"
#include "core/launch.h"
#include "core/port_block.h"

namespace gflow {

/// What an executor says of attempts.
namespace executor {

struct Started {
  JobId job;
  int attempt = 0;
  int pid = 0;           ///< of the job's first process, 0 if it is not known
  bool watches = false;  ///< Wanted would come of it
  GpuIsolation isolation = GpuIsolation::None;  ///< what keeps it from GPUs it was not given
};
struct Gone {
  JobId job;
  int attempt = 0;
  Outcome outcome;  ///< from the exit record, or why there is none
};

/// How an attempt stands that the store says was started.
struct NeverRan {};  ///< and now never will: the claim is revoked
struct StillRuns {
  int pid = 0;
  /// Begun: it is found out, or undone, by suspend() or resume(), of which Parks tells.
  ParkedMemory parked{};
  bool watches = false;  ///< as in Started
  GpuIsolation isolation = GpuIsolation::None;
};
struct Over {
  Outcome outcome;
};
/// It cannot be found out: nothing may be concluded. If it is known later, that is reported as
/// Adopted.
struct Unknown {
  std::string why;
};
using Adoption = std::variant<NeverRan, StillRuns, Over, Unknown>;
/// How an attempt stands that was Unknown when the daemon started.
struct Adopted {
  JobId job;
  int attempt = 0;
  Adoption how;
};
/// What became of the GPU memory of an attempt after suspend(), lend() or resume(): it is parked,
/// or could not be and the attempt is suspended with it, or runs on with it, or it is back.
struct Parks {
  JobId job;
  int attempt = 0;
  ParkedMemory parked;
};
/// What became of a move: the attempt is on the GPU it was told to move to, or on the one it was
/// on.
struct Moved {
  JobId job;
  int attempt = 0;
  std::string refused;  ///< why it stayed, for people; "": it did not
};
/// A program of an attempt wants the GPU it lends, of which it is told after lend(); once each
/// time.
struct Wanted {
  JobId job;
  int attempt = 0;
};
using Report = std::variant<Started, Gone, Adopted, Parks, Moved, Wanted>;

/// An attempt of which it is not known how it stands.
struct Doubt {
  JobId job;
  std::string why;
};

/// What is enforced on a node, and by what: a word of the mechanism, or "none: <why>". For people.
struct Enforcement {
  std::string kill;       ///< "cgroup.kill" or "process tree (subreaper)"
  std::string memory;     ///< "cgroup v2 memory.max", "cgroup v1 memory.limit_in_bytes"
  std::string cpu;        ///< the same
  std::string processes;  ///< the same
  std::string suspend;    ///< "cgroup v2 cgroup.freeze" or "SIGSTOP"
  std::string binding;    ///< "cgroup v2 cpuset.cpus", "cgroup v1 cpuset.cpus", "sched_setaffinity"
  /// What keeps jobs from GPUs they were not given: "cgroup v2 device filter (bpf)",
  /// "cgroup v1 devices.deny", "landlock".
  std::string gpu_isolation;
  std::string gpu_memory;   ///< of jobs that share a GPU: kGpuHeld
  std::string gpu_compute;  ///< of those with a part of its time: the same
  /// What takes the GPU memory of suspended jobs to host memory: kGpuParked; "" where there is no
  /// GPU of which it could be taken, or that is being found out.
  std::string parking{};
};

/// What libgflow-share.so does where it is installed.
inline constexpr std::string_view kGpuHeld =
    "libgflow-share.so, in programs that use an NVIDIA GPU through the CUDA driver";
inline constexpr std::string_view kGpuNotHeld =
    "none: libgflow-share.so is not installed, or in a directory with a space or a colon";

/// What Enforcement::gpu_isolation says where it is not wanted.
inline constexpr std::string_view kNotIsolated =
    "none: variables alone name the GPUs of a job (gpu_isolation in [runner] of gflow.toml)";

/// What Enforcement::parking says where it can be.
inline constexpr std::string_view kGpuParked =
    "gflow-park, of jobs with one NVIDIA GPU, by the CUDA driver";

/// What the store knows of an attempt: whether its program is known to have run.
enum class Progress { Committed, Started };

}  // namespace executor

/// The port through which attempts are run, and all that the daemon needs of who runs them: an
/// executor serves one node or several, starts there what it is ordered to, tells what becomes of
/// it, and goes on running it when the daemon is gone. The local implementation is runner::Runner.
/// One thread owns it and makes every call; no call blocks. Attempts that are not its own, or are
/// gone, are no error: every call may be repeated.
class Executor {
 public:
  virtual ~Executor() = default;

  /// Starts an attempt that is committed as Starting. Started or Gone follows; one that could not
  /// be started comes as Gone, too, so there is one path.
  virtual void launch(const LaunchOrder& order) = 0;
  /// Ends the attempt: signal (0: SIGTERM), grace, SIGKILL; it will say that it ended for `reason`.
  virtual void stop(JobId job, int attempt, int signal, EndReason reason) = 0;
  /// Sends this signal to all its processes and does nothing else; a suspended one gets it when it
  /// goes on. Not repeated by who calls.
  virtual void signal(JobId job, int attempt, int number) = 0;
  /// Stops every process of the attempt where it stands, or lets them go on. `park`: before that,
  /// what it has of its GPU is taken to host memory, no more than so much, and Parks follows; 0: it
  /// keeps it, unless it is parked already, which resume() ends, and of which Parks tells.
  virtual void suspend(JobId job, int attempt, Memory park) = 0;
  /// The same, but its processes run on: what it has of its GPU alone is taken, no more than so
  /// much. Parks follows, and Wanted when a program of it makes a call of the driver, which waits
  /// until resume() gave it back. For attempts that watch; for another, Parks says why not.
  virtual void lend(JobId job, int attempt, Memory most) = 0;
  virtual void resume(JobId job, int attempt) = 0;
  /// Brings what the attempt has of its only GPU to another one of its node, by way of host memory,
  /// of which it may take so much; its processes run on, and wait in their calls of the driver.
  /// Moved follows. It counts as neither suspended nor lent before, nor until then.
  virtual void move(JobId job, int attempt, const GpuMove& move, Memory most) = 0;
  /// The limit counts from the start of the attempt; empty: none. `ran`: how long it has run by
  /// now, without the time it was suspended. Told after each adoption, too.
  virtual void change_limit(JobId job,
                            int attempt,
                            std::optional<std::chrono::seconds> limit,
                            std::chrono::milliseconds ran) = 0;
  /// The most of its GPU's time it may have from now on, where others leave it: no less than its
  /// share. Told after each adoption, too.
  virtual void change_share_limit(JobId job, int attempt, Share limit) = 0;
  /// After a restart of the daemon: how an attempt stands; one that runs is watched again. boot_id
  /// is that of the attempt.
  [[nodiscard]] virtual executor::Adoption adopt(JobId job,
                                                 int attempt,
                                                 const std::string& boot_id,
                                                 executor::Progress progress) = 0;
  /// After a restart, once every attempt under way was adopted: `known` are all of them, on
  /// whatever node. What is left of others (a crash between commit and forget) is removed.
  virtual void sweep(const std::vector<std::pair<JobId, int>>& known) = 0;
  /// The attempts of which it is not known now how they stand, by job.
  [[nodiscard]] virtual std::vector<executor::Doubt> doubts() const = 0;
  /// The end of the attempt is committed: nothing of it is needed any more.
  virtual void forget(JobId job, int attempt) = 0;
  /// The job is forgotten: its log may go, too.
  virtual void remove_log(JobId job) = 0;
  /// Where the job's log is, or will be, on this machine: an absolute path; "" if it is elsewhere.
  [[nodiscard]] virtual std::string log_path(JobId job) const = 0;
  /// How large the job's log is on this machine's disk; 0 if it is not there.
  [[nodiscard]] virtual Memory log_size(JobId job) const = 0;
  /// By what means an attempt of its own that is under way is held to its part of a GPU: of its
  /// time, if it has a part of that.
  [[nodiscard]] virtual GpuLimits gpu_limits(JobId job, int attempt) const = 0;
  /// What keeps an attempt of its own that is under way from GPUs it was not given.
  [[nodiscard]] virtual GpuIsolation gpu_isolation(JobId job, int attempt) const = 0;
  /// The TCP ports of its node that an attempt of its own that is under way was given; none if it
  /// was given none.
  [[nodiscard]] virtual PortBlock ports(JobId job, int attempt) const = 0;
  /// Whether it can take the GPU memory of suspended attempts to host memory on one of its nodes.
  [[nodiscard]] virtual bool parks(const std::string& node) const = 0;
  /// Why move() cannot be on one of its nodes though it parks, for people; "": it can.
  [[nodiscard]] virtual std::string cannot_move(const std::string& node) const = 0;
  /// What keeps the attempts it launches on one of its nodes from GPUs they were not given: its
  /// orders say from which.
  [[nodiscard]] virtual GpuIsolation isolates(const std::string& node) const = 0;
  /// What is enforced on one of its nodes.
  [[nodiscard]] virtual executor::Enforcement enforcement(const std::string& node) const = 0;
  /// Readable while poll() has something to say, from whatever thread that came. The executor's
  /// own, the same as long as it lives: who waits for it neither reads nor closes it.
  [[nodiscard]] virtual int fd() const = 0;
  /// What happened since the last call.
  [[nodiscard]] virtual std::vector<executor::Report> poll() = 0;
};

}  // namespace gflow
