// SPDX-License-Identifier: Apache-2.0
#include "engine/health.h"

#include <algorithm>

#include "engine/step_internal.h"

/// Nodes on which launches fail: closed for a while, tried again, well again.
namespace gflow::engine {
namespace {

constexpr std::chrono::seconds kLongestPause{60};

/// Whether this end says that a launch got as far as the job itself.
bool proves_health(const Job& job, const Outcome& outcome) {
  switch (outcome.reason) {
    case EndReason::Exited:
    case EndReason::Signalled:
    case EndReason::TimeLimit:
    case EndReason::OutOfMemory:
    case EndReason::LaunchFailed:
      return true;
    default:
      return std::holds_alternative<Running>(job.state);
  }
}

}  // namespace

std::chrono::milliseconds Index::longest_launch_pause() const {
  return std::max(policy.launch_backoff, kLongestPause);
}

std::chrono::milliseconds Index::launch_pause(int failures) const {
  const std::chrono::milliseconds pause =
      policy.launch_backoff * (1 << std::clamp(failures - 1, 0, 16));
  return std::min(pause, longest_launch_pause());
}

void Index::put_health(const std::string& node) {
  if (const auto known = ledger.find(node)) put_node(ledger.node(*known));
}

/// Nodes whose pause is over take launches again.
void Step::retry_nodes() {
  for (const auto& [node, health] : index_.health) {
    if (!is_closed(health, index_.lived())) index_.put_health(node);
  }
}

/// What is known of the node changed.
void Step::put_health(const std::string& node) {
  index_.put_health(node);
  health_changed_ = true;
}

/// A job is about to be launched on a node that failed lately: the only one until that is known.
void Step::try_node(JobId id, const std::string& node) {
  const auto at = index_.health.find(node);
  if (at == index_.health.end()) return;
  at->second.trial = id;
  at->second.tried.erase(id);  // what becomes of this launch is not known yet
  put_health(node);
}

/// What the end, or with no outcome the start, of an attempt says of its node.
void Step::judge_node(const Job& job, const Outcome* outcome) {
  const std::string node = attempt_of(job)->allocation.node;
  if (outcome == nullptr || proves_health(job, *outcome)) return node_is_well(node);
  const FailureKind kind = outcome->failure.kind;
  const bool node_failed = outcome->reason == EndReason::NotStarted &&
                           (kind == FailureKind::Node || kind == FailureKind::Unknown);
  const auto at = index_.health.find(node);
  if (node_failed) {
    NodeHealth& health = index_.health.try_emplace(node, NodeHealth{.node = node}).first->second;
    health.reason = outcome->message;
    ++health.failures;
    health.retry_at = index_.lived() + index_.launch_pause(health.failures);
    health.trial.reset();
    health.tried.insert(job.id);
  } else if (at != index_.health.end() && at->second.trial == job.id) {
    at->second.trial.reset();  // it was taken back: nothing is known, the next one is tried
  } else {
    return;
  }
  put_health(node);
  ++index_.revision;
}

void Step::node_is_well(const std::string& node) {
  auto entry = index_.health.extract(node);
  if (entry.empty()) return;
  put_health(node);
  ++index_.revision;
  for (const JobId id : entry.mapped().tried) try_again_now(id);
}

void Step::try_again_now(JobId id) {
  const Job* job = index_.find(id);
  if (job == nullptr || !std::holds_alternative<Queued>(job->state)) return;
  index_.change(id, [](Job& changed) { std::get<Queued>(changed.state).not_before.reset(); });
  saved(id, Happening::Nothing);
}

/// Nobody else wanted to go where these failed: they may try again. True if there are any.
bool Step::try_failed_again() {
  bool any = false;
  for (auto& [node, health] : index_.health) {
    if (is_closed(health, index_.lived())) continue;
    if (health.tried.empty()) continue;
    any = health_changed_ = true;
    for (const JobId id : std::exchange(health.tried, {})) try_again_now(id);
  }
  return any;
}

}  // namespace gflow::engine
