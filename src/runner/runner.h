// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/executor.h"

namespace gflow::runner {

using executor::Adopted;
using executor::Adoption;
using executor::Doubt;
using executor::Enforcement;
using executor::Gone;
using executor::Moved;
using executor::NeverRan;
using executor::Over;
using executor::Parks;
using executor::Report;
using executor::Started;
using executor::StillRuns;
using executor::Unknown;
using executor::Wanted;

struct Options {
  std::string attempts_dir;  ///< absolute; one directory per attempt
  std::string logs_dir;      ///< absolute; <job>.log
  std::string shim;          ///< absolute path of gflow-shim
  std::string
      share_library;  ///< absolute path of libgflow-share.so; "": jobs are not held to theirs
  std::string park;   ///< absolute path of gflow-park; "": it is not installed
  bool probes_parking = false;   ///< there is a GPU whose memory it may be able to take
  bool serves_everyone = false;  ///< jobs are of any user of the machine
  std::string boot_id;
  std::uint64_t open_files = 0;  ///< soft limit of open files jobs start with; 0: the daemon's
  /// Removes a directory with all that is in it, now or later; empty: at once. A job may have put
  /// as much as it likes into its own.
  std::function<void(std::string path)> remove = {};
  std::string socket;     ///< GFLOW_API of jobs; "" for none
  int ports = 0;          ///< given to each attempt, so many in a row
  bool bind_cpus = true;  ///< false: the CPUs of orders are not this machine's (a simulated one's)
  /// How long a supervisor may be silent about its launch before it is looked at.
  std::chrono::milliseconds launch_patience = std::chrono::seconds(10);
  /// How long a supervisor may be silent past the end its job should have had before it is looked
  /// at.
  std::chrono::milliseconds end_patience = std::chrono::seconds(5);
  /// How long an attempt whose supervisor is not stopped may run on past its grace before it is
  /// killed with it. A supervisor needs milliseconds; on a machine that swaps it gets what a launch
  /// does.
  std::chrono::milliseconds kill_patience = std::chrono::minutes(2);
  /// How long gflow-park may take: half of it for what a GPU is computing.
  std::chrono::seconds park_patience = std::chrono::minutes(2);
  GpuIsolation isolation = GpuIsolation::None;  ///< what keeps jobs from GPUs they were not given
  /// Errors where that cannot be had; false: jobs run without.
  bool needs_isolation = false;
  bool use_cgroups = true;  ///< false: the fallback, for tests and for `[runner] cgroups = false`
};

/// Starts, supervises, stops and re-adopts attempts, each through a gflow-shim process that
/// outlives the daemon. No threads, no blocking call longer than a file operation: readiness is one
/// descriptor. One thread owns it. Destroying it leaves every job running.
class Runner : public Executor {
 public:
  using Progress = executor::Progress;
  [[nodiscard]] static Result<std::unique_ptr<Runner>> open(Options options);
  ~Runner() override;
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  [[nodiscard]] int fd() const override;
  [[nodiscard]] std::vector<Report> poll() override;

  /// Starts the shim of an attempt the store has committed as Starting. Started or Gone follows.
  /// A failure here, or a shim that dies before the program of the job ran, comes as Gone, so there
  /// is one path. One that is silent for Options::launch_patience is looked at. If it is stopped,
  /// it is killed where it has not claimed the attempt, whose claim is revoked first, and else made
  /// to go on; if it is not stopped and claims nothing, it is killed so after 2 minutes. Gone comes
  /// with LaunchFailed if that is the job's own fault (no such directory, no such
  /// program), which a second try would not mend, else with NotStarted and whose fault it is
  /// (core/failure.h).
  void launch(const LaunchOrder& order) override;
  /// Tells the shim to end the attempt: signal (0: SIGTERM), grace, SIGKILL; its exit record will
  /// say `reason`. If the shim has not claimed the attempt yet, the claim is revoked and Gone
  /// follows. Safe to repeat, and for attempts that are gone.
  void stop(JobId job, int attempt, int signal, EndReason reason) override;
  /// Stops every process of the attempt where it stands, or lets them go on; its time limit and its
  /// run time do not count meanwhile. Safe to repeat; nothing happens to one that is being stopped
  /// or is gone. stop() lets a suspended attempt go on, so that it can clean up.
  void signal(JobId job, int attempt, int number) override;
  /// One that is to be parked runs on until its GPU memory is in host memory, as a thread in its
  /// processes takes it there, and is stopped then. One that goes on is given it back; as long as
  /// its GPU has no room for that it stands again, which doubts() tells.
  void suspend(JobId job, int attempt, Memory park) override;
  void lend(JobId job, int attempt, Memory most) override;
  void resume(JobId job, int attempt) override;
  void move(JobId job, int attempt, const GpuMove& move, Memory most) override;
  void change_share_limit(JobId job, int attempt, Share limit) override;
  /// See Executor. The supervisor keeps the limit and the grace. As a job of the same user can stop
  /// that, both are counted here, too: Options::end_patience past the time limit it is told to end
  /// its job, and one that is stopped then, or after stop(), is made to go on; one that is stopped
  /// again when the grace is over is told to kill it, and at last killed with it. So is one that is
  /// not, where its job runs on for Options::kill_patience past that.
  void change_limit(JobId job,
                    int attempt,
                    std::optional<std::chrono::seconds> limit,
                    std::chrono::milliseconds ran) override;

  /// After a restart of the daemon: finds out how an attempt stands and, if it still runs, watches
  /// it again. Whatever cannot be read makes it Unknown, never over.
  [[nodiscard]] Adoption adopt(
      JobId job,
      int attempt,
      const std::string& boot_id,
      executor::Progress progress = executor::Progress::Committed) override;
  void sweep(const std::vector<std::pair<JobId, int>>& known) override;
  [[nodiscard]] std::vector<Doubt> doubts() const override;
  /// The end of the attempt is committed: removes its directory and cgroups.
  void forget(JobId job, int attempt) override;
  void remove_log(JobId job) override;
  [[nodiscard]] std::string log_path(JobId job) const override;
  [[nodiscard]] Memory log_size(JobId job) const override;
  /// The same for whatever node: it serves this machine only.
  [[nodiscard]] GpuLimits gpu_limits(JobId job, int attempt) const override;
  [[nodiscard]] GpuIsolation gpu_isolation(JobId job, int attempt) const override;
  [[nodiscard]] PortBlock ports(JobId job, int attempt) const override;
  [[nodiscard]] bool parks(const std::string& node) const override;
  [[nodiscard]] std::string cannot_move(const std::string& node) const override;
  [[nodiscard]] GpuIsolation isolates(const std::string& node) const override;
  [[nodiscard]] Enforcement enforcement(const std::string& node) const override;

  /// The job a process belongs to, by its ancestors up to a shim; empty if it is not gflow's.
  [[nodiscard]] std::optional<JobId> owner_of(int pid) const;

 private:
  struct Core;
  explicit Runner(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

}  // namespace gflow::runner
