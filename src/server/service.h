// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/account.h"
#include "api/types.h"
#include "core/gpu_limits.h"
#include "core/port_block.h"
#include "core/principal.h"
#include "engine/event.h"
#include "engine/state.h"
#include "os/fd.h"
#include "server/counters.h"
#include "server/submission.h"
#include "server/token_table.h"
#include "settings/settings.h"

namespace gflow::server {

class AnsweredAllocations;
class Body;
class EventJournal;
class HttpCounters;
struct Route;

/// What handlers need of the daemon. Everything runs on the loop's one thread; an answer comes
/// after the commit, from a later tick of the loop.
class Service {
 public:
  virtual ~Service() = default;

  using Answer = std::function<void(Result<std::vector<JobId>>)>;

  [[nodiscard]] virtual const engine::State& state() const = 0;
  [[nodiscard]] virtual Now now() const = 0;
  [[nodiscard]] virtual std::string log_path(JobId job) const = 0;
  /// How a log is read that is no file of this machine.
  struct DistantLog {
    /// What there is of it by now. Away from the loop. Errors: NotFound before it has begun.
    std::function<Result<os::Fd>()> read;
    /// From this byte on, or of the last lines, as it is written, until the job has ended.
    std::function<std::shared_ptr<Body>(std::uint64_t from, std::optional<std::uint64_t> lines)>
        follow;
  };
  /// Empty: it is the file at log_path().
  [[nodiscard]] virtual std::optional<DistantLog> distant_log(const Job& /*job*/) const {
    return {};
  }
  /// By what means a job that is under way is held to its part of a GPU.
  [[nodiscard]] virtual GpuLimits gpu_limits(const Job& job) const = 0;
  /// The job that a process of this machine belongs to; empty if it is none of gflow's.
  [[nodiscard]] virtual std::optional<JobId> owner_of(int pid) const = 0;
  /// What keeps a job that has started from GPUs it was not given; empty where that is not gflow's
  /// doing.
  [[nodiscard]] virtual std::optional<GpuIsolation> gpu_isolation(const Job& job) const = 0;
  /// The TCP ports a job that is under way was given on its node; none if it was given none.
  [[nodiscard]] virtual PortBlock ports(const Job& job) const = 0;

  /// The specs have their owner already.
  virtual void submit(api::SubmitRequest request,
                      const Principal& by,
                      Answer answer,
                      SubmitIf condition = {}) = 0;
  /// Has it decided, if `check` holds then, where one is given: what it fails with is answered
  /// else.
  using Check = std::function<Result<void>()>;
  virtual void request(engine::Event event, Answer answer, Check check = {}) = 0;
  /// Calls back once the state's revision is not `revision` any more (and, if `job` is given, that
  /// job changed since), or after `most`; not any more once the wait returned is let go of.
  [[nodiscard]] virtual std::shared_ptr<void> on_change(std::uint64_t revision,
                                                        std::optional<JobId> job,
                                                        std::chrono::milliseconds most,
                                                        std::function<void()> then) = 0;
  /// Where it is noted which allocations were answered; null: nowhere.
  [[nodiscard]] virtual const AnsweredAllocations* answered_allocations() const { return nullptr; }
  /// What happened, for those who listen.
  [[nodiscard]] virtual EventJournal& events() = 0;
  /// With the warnings that name jobs for who is shown others' so far.
  [[nodiscard]] virtual api::DaemonView daemon(OthersJobs shown) const = 0;
  [[nodiscard]] virtual const Counters& counters() const = 0;
  /// What connections do; null where there are none.
  [[nodiscard]] virtual const HttpCounters* http_counters() const { return nullptr; }
  /// What is to be measured when asked for.
  [[nodiscard]] virtual Vitals vitals() const { return {}; }
  /// [metrics]
  [[nodiscard]] virtual settings::Metrics metrics_wanted() const { return {}; }
  [[nodiscard]] virtual std::vector<api::SettingView> settings() const = 0;
  [[nodiscard]] virtual const TokenTable& tokens() const = 0;
  /// These instead of those there are, on disk when it returns. Errors: Exhausted.
  [[nodiscard]] virtual Result<void> keep_tokens(std::vector<Token> tokens) = 0;
  /// Whether what a route is for is done here at all, whoever asks: who shows what another decides
  /// changes nothing. Errors: of any code, saying where it is done.
  [[nodiscard]] virtual Result<void> serves(const Route& /*route*/) const { return {}; }
  /// What the one who decides says of why a job waits, in words of its own; empty where that is
  /// this daemon, which says what its blockers say.
  [[nodiscard]] virtual std::optional<std::string> told(const Job& /*job*/) const { return {}; }
  /// Whether what starts when is decided here; else nothing is known of how long jobs run.
  [[nodiscard]] virtual bool decides() const { return true; }
  /// Whether new jobs are taken, for anybody: without names and numbers. Errors:
  /// Unreachable, saying what that waits for.
  [[nodiscard]] virtual Result<void> ready() const { return {}; }
  /// Ends the daemon after this tick; jobs keep running.
  virtual void stop() = 0;
  /// Reads the configuration again.
  virtual Result<void> reload() = 0;
};

}  // namespace gflow::server
