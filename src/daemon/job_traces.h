// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/types.h"
#include "core/launch.h"
#include "core/trace_context.h"
#include "daemon/otlp_exporter.h"

namespace gflow::daemon {

/// The life of jobs as traces of OpenTelemetry, if a collector is configured. Of each job a span
/// "job NAME" from submission to end, which is a child of the span its submitter was in (its
/// TRACEPARENT), and in it "queued", "starting" and "running" of each attempt. The job is told its
/// own TRACEPARENT, so that its spans are children of "running". All on the loop's thread; sending
/// is not.
class JobTraces {
 public:
  JobTraces() = default;
  /// As the daemon ends: waits for what is left to be sent, for a second at most.
  ~JobTraces();
  JobTraces(const JobTraces&) = delete;
  JobTraces& operator=(const JobTraces&) = delete;

  /// Sends there from now on; "" to nobody.
  void set_endpoint(const std::string& endpoint, const std::string& node);
  [[nodiscard]] bool is_on() const { return exporter_ != nullptr; }

  /// What the jobs of a submission are children of, by position; so many jobs each.
  struct Parent {
    std::optional<TraceContext> of;
    std::uint64_t jobs = 1;
  };
  using Parents = std::vector<Parent>;
  [[nodiscard]] static Parents parents_in(const api::SubmitRequest& request);
  void submitted(const Parents& parents, const std::vector<JobId>& jobs);
  /// One that ran when the daemon started, with what it runs.
  void know(const Job& job, const Payload& payload);
  /// Before it is launched: its TRACEPARENT is put in its environment.
  void launching(const Job& job, LaunchOrder& order);
  /// After a tick in which it changed.
  void see(const Job& job, WallTime now);

  [[nodiscard]] std::string trace_id(const Job& job) const;  ///< "" if none is made
  [[nodiscard]] std::uint64_t sent() const { return is_on() ? exporter_->sent() : 0; }
  [[nodiscard]] std::uint64_t dropped() const { return is_on() ? exporter_->dropped() : 0; }

 private:
  struct Known {
    std::optional<TraceContext> parent{};
    int attempt = 0;                      ///< the newest whose start was told
    WallTime queued{};                    ///< since when it waits for the next
    std::optional<WallTime> ran{};        ///< when the present one was known to run
    std::chrono::milliseconds served{0};  ///< Job::served when the present one began
  };
  Known& known(const Job& job);
  void see_attempt(const Job& job, Known& known, const Attempt& attempt);
  /// It began to run then, if that was not told before.
  void see_running(const Job& job, Known& known, const Attempt& attempt, WallTime since);
  void end_attempt(const Job& job, const Known& known, const Attempt& attempt, WallTime at);
  [[nodiscard]] api::Span root_span(const Job& job, const Known& known, const Ended& ended) const;
  void send(const Job& job, const std::string& what, WallTime start, WallTime end);
  [[nodiscard]] api::Span span_of(const Job& job, const std::string& what) const;

  std::string node_;
  std::unique_ptr<OtlpExporter> exporter_;
  std::map<JobId, Known> known_;       ///< that have not ended
  std::map<JobId, Attempt> attempts_;  ///< of those that run
};

}  // namespace gflow::daemon
