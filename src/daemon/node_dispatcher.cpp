// SPDX-License-Identifier: Apache-2.0
#include "daemon/node_dispatcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/stop.h"
#include "os/clock.h"
#include "runner/outcome.h"

namespace gflow::daemon {
namespace {

std::string nobody_on(const std::string& node) { return kept<Kept::NobodyOnNode>(printable(node)); }

}  // namespace

NodeDispatcher::NodeDispatcher(const engine::State& state,
                               store::Store& store,
                               const std::vector<NodeExecutor>& executors,
                               std::function<void(engine::Event)> post,
                               std::function<void(LaunchOrder&)> launching,
                               std::function<void(const MadeSlice&)> cut)
    : state_(state),
      store_(store),
      executors_(executors),
      post_(std::move(post)),
      launching_(std::move(launching)),
      cut_(std::move(cut)) {
  for (const auto& [executor, nodes] : executors_) {
    for (const std::string& node : nodes) by_node_.emplace(node, executor.get());
  }
}

Executor* NodeDispatcher::executor_at(const std::string& node) const {
  const auto at = by_node_.find(node);
  return at == by_node_.end() ? nullptr : at->second;
}

Executor* NodeDispatcher::executor_of(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || !is_active(job)) return nullptr;
  return executor_at(attempt->allocation.node);
}

void NodeDispatcher::refuse(const LaunchOrder& order, Outcome outcome) {
  post_(engine::event::AttemptEnded{order.job, order.attempt, std::move(outcome)});
}

void NodeDispatcher::launch(const LaunchOrder& order) {
  Executor* executor = executor_at(order.node);
  if (executor == nullptr) {
    post_(engine::event::NodeUnreachable{order.node, nobody_on(order.node)});
    return refuse(order,
                  {.reason = EndReason::NotStarted,
                   .message = nobody_on(order.node),
                   .failure = {.kind = FailureKind::Node}});
  }
  auto payload = store_.payload(order.job);
  if (!payload) {
    const bool told = payload.error().number != 0;  // by the machine
    return refuse(
        order,
        runner::not_launched(
            told ? FailureKind::Node : FailureKind::Unknown, "read what to run", payload.error()));
  }
  LaunchOrder complete = order;
  complete.payload = std::move(*payload);
  if (launching_) launching_(complete);
  executor->launch(complete);
}

executor::Adoption NodeDispatcher::adopt(const Job& job) {
  const Attempt& attempt = *attempt_of(job);
  Executor* executor = executor_of(job);
  if (executor == nullptr) return executor::Unknown{nobody_on(attempt.allocation.node)};
  const bool started = std::holds_alternative<Running>(job.state);
  return executor->adopt(job.id,
                         attempt.number,
                         attempt.boot_id,
                         started ? executor::Progress::Started : executor::Progress::Committed);
}

void NodeDispatcher::stop(const Job& job) {
  Executor* executor = executor_of(job);
  if (executor == nullptr) return;
  const Stop* stop = stop_of(job);
  const bool preempted = stop != nullptr && stop->reason == EndReason::Preempted;
  int signal = stop != nullptr ? stop->signal : 0;
  if (preempted && signal == 0) signal = job.spec.preempt_signal;
  executor->stop(job.id,
                 attempt_of(job)->number,
                 signal,
                 preempted ? EndReason::Preempted : EndReason::Cancelled);
}

void NodeDispatcher::suspend(const Job& job) {
  Executor* executor = executor_of(job);
  if (executor == nullptr) return;
  const auto* running = std::get_if<Running>(&job.state);
  const bool parks = running != nullptr && running->parked.how == Parking::Begun;
  const Memory most = parks ? running->parked.memory : Memory{};
  const int attempt = attempt_of(job)->number;
  const bool lends = running != nullptr && running->lends && running->suspended_by.empty();
  return lends ? executor->lend(job.id, attempt, most) : executor->suspend(job.id, attempt, most);
}

void NodeDispatcher::resume(const Job& job) {
  if (Executor* executor = executor_of(job)) executor->resume(job.id, attempt_of(job)->number);
}

void NodeDispatcher::move(const Job& job) {
  const auto* running = std::get_if<Running>(&job.state);
  Executor* executor = executor_of(job);
  if (executor == nullptr || running == nullptr || !running->move) return;
  executor->move(job.id, attempt_of(job)->number, *running->move, state_.copy_of(job));
}

void NodeDispatcher::signal(const Job& job, int number) {
  if (Executor* executor = executor_of(job)) {
    executor->signal(job.id, attempt_of(job)->number, number);
  }
}

void NodeDispatcher::cut(const MadeSlice& slice) {
  if (cut_) cut_(slice);
}

void NodeDispatcher::change_limit(const Job& job) {
  Executor* executor = executor_of(job);
  if (executor == nullptr) return;
  const int attempt = attempt_of(job)->number;
  executor->change_limit(job.id, attempt, job.spec.time_limit, run_time_of(job, os::now().mono));
  const Request& request = job.spec.request;
  if (request.mode == GpuMode::Fraction) {
    executor->change_share_limit(job.id, attempt, std::max(request.share, request.share_limit));
  }
}

// The job may be queued again by now, or gone: which node it was on is not kept.
void NodeDispatcher::forget_attempt(JobId job, int attempt) {
  for (const NodeExecutor& each : executors_) each.executor->forget(job, attempt);
}

void NodeDispatcher::forget_job(JobId job) {
  for (const NodeExecutor& each : executors_) each.executor->remove_log(job);
}

std::string NodeDispatcher::largest_log() const {
  constexpr std::size_t kMaxEnded = 1000;  // whose logs are looked at; who filled it is among them
  const Job* largest = nullptr;
  Memory size;
  const auto look_at = [&](const Job* job) {
    for (const NodeExecutor& each : executors_) {
      const Memory its = each.executor->log_size(job->id);
      if (its <= size) continue;
      largest = job;
      size = its;
    }
  };
  std::ranges::for_each(state_.list({.statuses = kActive}), look_at);
  std::ranges::for_each(state_.last_ended(kMaxEnded), look_at);
  if (largest == nullptr) return {};
  const std::string owner = printable(largest->spec.user.name);
  const std::string bytes = memory_text(size);
  return is_ended(*largest)
             ? tr_format("the largest log is that of job {} of {}, which has ended ({})",
                         largest->id.value,
                         owner,
                         bytes)
             : tr_format("the largest log is that of job {} of {}, which runs ({})",
                         largest->id.value,
                         owner,
                         bytes);
}

void NodeDispatcher::sweep(const std::vector<std::pair<JobId, int>>& known) {
  for (const NodeExecutor& each : executors_) each.executor->sweep(known);
}

std::vector<executor::Doubt> NodeDispatcher::doubts() const {
  std::vector<executor::Doubt> all;
  for (const NodeExecutor& each : executors_) {
    std::ranges::move(each.executor->doubts(), std::back_inserter(all));
  }
  return all;
}

GpuLimits NodeDispatcher::gpu_limits(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  const Executor* its = attempt == nullptr ? nullptr : executor_at(attempt->allocation.node);
  if (its == nullptr) return {};
  GpuLimits limits = its->gpu_limits(job.id, attempt->number);
  // Who has all of its time is held to nothing there.
  if (job.spec.request.share == Share::whole()) limits.compute = GpuLimit::None;
  return limits;
}

GpuIsolation NodeDispatcher::gpu_isolation(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  const Executor* its = attempt == nullptr ? nullptr : executor_at(attempt->allocation.node);
  return its == nullptr ? GpuIsolation::None : its->gpu_isolation(job.id, attempt->number);
}

PortBlock NodeDispatcher::ports(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  const Executor* its = attempt == nullptr ? nullptr : executor_at(attempt->allocation.node);
  return its == nullptr ? PortBlock{} : its->ports(job.id, attempt->number);
}

std::string NodeDispatcher::log_path(const Job& job) const {
  const Attempt* attempt = attempt_of(job);
  const Executor* its = attempt == nullptr ? nullptr : executor_at(attempt->allocation.node);
  return (its == nullptr ? *executors_.front().executor : *its).log_path(job.id);
}

std::string doubt_text(const executor::Doubt& doubt) {
  return tr_format(
      "it is not known how job {} stands, and it keeps what it holds until that is known: {}",
      doubt.job.value,
      doubt.why);
}

}  // namespace gflow::daemon
