// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_traces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/version.h"

namespace gflow::daemon {
namespace {

std::string numbered(const char* what, int attempt) { return fmt::format("{} {}", what, attempt); }

std::string gpus_text(const Attempt& attempt) {
  return fmt::format("{}", fmt::join(attempt.allocation.gpus, ","));
}

bool never_ran(const Outcome& outcome) {
  return outcome.reason == EndReason::NotStarted || outcome.reason == EndReason::LaunchFailed;
}

/// Why it is no success; "" if it is one.
std::string error_of(const Job& job) {
  const auto* ended = std::get_if<Ended>(&job.state);
  if (ended == nullptr || ended->status == Status::Finished) return {};
  return fmt::format("{}: {}", status_name(ended->status), outcome_text(ended->outcome));
}

}  // namespace

JobTraces::~JobTraces() {
  if (exporter_) exporter_->finish();
}

void JobTraces::set_endpoint(const std::string& endpoint, const std::string& node) {
  node_ = node;
  exporter_.reset();
  if (endpoint.empty()) {
    known_.clear();
    attempts_.clear();
    return;
  }
  exporter_ =
      std::make_unique<OtlpExporter>(endpoint,
                                     api::SpanAttributes{{"service.name", "gflowd"},
                                                         {"service.version", std::string(kVersion)},
                                                         {"host.name", node}});
}

JobTraces::Parents JobTraces::parents_in(const api::SubmitRequest& request) {
  Parents parents;
  for (const auto& item : request.items) {
    auto own = trace_context_in(item.payload.environment);
    if (!own && item.like) own = parents.at(*item.like).of;
    parents.push_back({std::move(own), item.count()});
  }
  return parents;
}

void JobTraces::submitted(const Parents& parents, const std::vector<JobId>& jobs) {
  if (!is_on()) return;
  auto job = jobs.begin();
  for (const Parent& parent : parents) {
    for (std::uint64_t i = 0; i < parent.jobs && job != jobs.end(); ++i, ++job) {
      if (parent.of) known_[*job].parent = parent.of;
    }
  }
}

void JobTraces::know(const Job& job, const Payload& payload) {
  if (!is_on()) return;
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr) return;
  Known& one = known(job);
  one.parent = trace_context_in(payload.environment);
  one.attempt = attempt->number;
  one.ran = attempt->started;
  attempts_[job.id] = *attempt;
}

void JobTraces::launching(const Job& job, LaunchOrder& order) {
  if (!is_on()) return;
  auto& environment = order.payload.environment;
  Known& one = known(job);
  if (!one.parent) one.parent = trace_context_in(environment);
  const bool is_sampled = !one.parent || one.parent->sampled;
  std::erase_if(environment,
                [](const std::string& line) { return line.starts_with("TRACEPARENT="); });
  environment.push_back(
      "TRACEPARENT=" +
      traceparent_text(
          {trace_id(job), span_id_of(node_, job, numbered("running", order.attempt)), is_sampled}));
}

JobTraces::Known& JobTraces::known(const Job& job) {
  Known& one = known_[job.id];
  if (one.queued == WallTime{}) {
    one.queued = job.submitted;
    one.served = job.served;
  }
  return one;
}

std::string JobTraces::trace_id(const Job& job) const {
  if (!is_on()) return {};
  const auto found = known_.find(job.id);
  if (found != known_.end() && found->second.parent) return found->second.parent->trace_id;
  return trace_id_of(node_, job);
}

void JobTraces::see(const Job& job, WallTime now) {
  if (!is_on()) return;
  Known& one = known(job);
  const Attempt* attempt = attempt_of(job);
  if (attempt != nullptr && attempt->number > one.attempt) see_attempt(job, one, *attempt);
  if (std::holds_alternative<Running>(job.state)) see_running(job, one, *attempt, now);
  if (is_active(job)) return;
  const auto* ended = std::get_if<Ended>(&job.state);
  const WallTime at = ended == nullptr ? now : ended->at;
  if (const auto last = attempts_.find(job.id); last != attempts_.end()) {
    // Of one that began and ended since the job was last seen its run time tells when it began.
    const auto ran_for = ended == nullptr ? job.served - one.served : ended->outcome.run_time;
    const bool did_run = ended == nullptr ? ran_for.count() > 0 : !never_ran(ended->outcome);
    if (did_run) see_running(job, one, last->second, at - ran_for);
    end_attempt(job, one, last->second, at);
    attempts_.erase(last);
  }
  one.ran.reset();
  one.queued = at;
  one.served = job.served;
  if (ended == nullptr) return;
  if (!ended->attempt) send(job, numbered("queued", 1), job.submitted, at);
  if (!one.parent || one.parent->sampled) exporter_->send(root_span(job, one, *ended));
  known_.erase(job.id);
}

api::Span JobTraces::root_span(const Job& job, const Known& known, const Ended& ended) const {
  api::Span root = span_of(job, "job");
  root.name = "job " + job.spec.name;
  root.parent_id = known.parent ? known.parent->span_id : "";
  root.start = job.submitted;
  root.end = ended.at;
  root.attributes.emplace_back("gflow.job.attempts", std::int64_t{job.attempts});
  root.attributes.emplace_back("gflow.job.status", std::string(status_name(ended.status)));
  if (ended.outcome.reason == EndReason::Exited) {
    root.attributes.emplace_back("process.exit.code", std::int64_t{ended.outcome.exit_code});
  }
  root.error = error_of(job);
  return root;
}

void JobTraces::see_attempt(const Job& job, Known& known, const Attempt& attempt) {
  const auto before = attempts_.find(job.id);
  if (before != attempts_.end()) {
    end_attempt(job, known, before->second, attempt.started);
    known.queued = attempt.started;
  }
  send(job, numbered("queued", attempt.number), known.queued, attempt.started);
  known.attempt = attempt.number;
  known.ran.reset();
  attempts_[job.id] = attempt;
}

void JobTraces::see_running(const Job& job, Known& known, const Attempt& attempt, WallTime since) {
  if (known.ran) return;
  known.ran = std::max(since, attempt.started);
  send(job, numbered("starting", attempt.number), attempt.started, *known.ran);
}

/// One that was never known to run has a span all the same, as its job was told to be in it.
void JobTraces::end_attempt(const Job& job,
                            const Known& known,
                            const Attempt& attempt,
                            WallTime at) {
  if (known.parent && !known.parent->sampled) return;
  api::Span span = span_of(job, numbered("running", attempt.number));
  span.start = std::min(known.ran.value_or(attempt.started), at);
  span.end = at;
  span.attributes.emplace_back("gflow.attempt", std::int64_t{attempt.number});
  span.attributes.emplace_back("gflow.node", attempt.allocation.node);
  span.attributes.emplace_back("gflow.gpus", gpus_text(attempt));
  span.error = error_of(job);
  exporter_->send(std::move(span));
}

void JobTraces::send(const Job& job, const std::string& what, WallTime start, WallTime end) {
  const auto found = known_.find(job.id);
  if (found != known_.end() && found->second.parent && !found->second.parent->sampled) return;
  api::Span span = span_of(job, what);
  span.start = std::min(start, end);
  span.end = end;
  exporter_->send(std::move(span));
}

/// A child of the job's own; its name is without the number of the attempt, which spans of a kind
/// have in common.
api::Span JobTraces::span_of(const Job& job, const std::string& what) const {
  api::Span span;
  span.trace_id = trace_id(job);
  span.span_id = span_id_of(node_, job, what);
  span.parent_id = span_id_of(node_, job, "job");
  span.name = what.substr(0, what.find(' '));
  span.attributes = {{"gflow.job.id", static_cast<std::int64_t>(job.id.value)},
                     {"gflow.job.name", job.spec.name},
                     {"gflow.job.user", job.spec.user.name},
                     {"gflow.job.project", job.spec.project},
                     {"gflow.job.gpus", std::int64_t{job.spec.request.gpus}}};
  return span;
}

}  // namespace gflow::daemon
