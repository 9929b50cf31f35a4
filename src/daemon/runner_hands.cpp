// SPDX-License-Identifier: Apache-2.0
#include "daemon/runner_hands.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "base/text.h"
#include "os/user.h"
#include "runner/environment.h"
#include "runner/outcome.h"

namespace gflow::daemon {

RunnerHands::RunnerHands(const engine::State& state,
                         store::Store& store,
                         runner::Runner& runner,
                         Remover& remover,
                         std::string socket,
                         std::function<void(engine::Event)> post)
    : state_(state),
      store_(store),
      runner_(runner),
      remover_(remover),
      socket_(std::move(socket)),
      post_(std::move(post)) {}

void RunnerHands::read_ports(JobId job, int attempt) {
  const auto ports = runner_.ports_of(job, attempt);
  if (!ports) {
    ports_unread_.emplace(job, attempt);
  } else if (ports->count > 0) {
    ports_[job] = *ports;
  }
}

/// Ports that no other job of this daemon was given; none if there are none, which a job that does
/// not need them never notices.
runner::PortBlock RunnerHands::ports_for(JobId job) {
  constexpr int kPortsPerJob = 8;
  for (const auto& [other, attempt] : std::exchange(ports_unread_, {})) read_ports(other, attempt);
  std::vector<runner::PortBlock> taken;
  for (const auto& [other, block] : ports_) taken.push_back(block);
  const runner::PortBlock found =
      runner::find_ports(kPortsPerJob, taken).value_or(runner::PortBlock{});
  if (found.count > 0) ports_[job] = found;
  return found;
}

void RunnerHands::launch(const Job& job) {
  const Attempt& attempt = *attempt_of(job);
  runner::LaunchOrder order;
  order.job = job.id;
  order.attempt = attempt.number;
  order.user = job.spec.user;
  order.work_dir = job.spec.work_dir;
  order.time_limit = job.spec.time_limit;
  order.grace = job.spec.grace;
  order.limits = job.spec.request;
  // The CPUs of a simulated machine are not this machine's.
  if (!state_.machine().source.starts_with("sim:")) order.cpus = attempt.allocation.cpus;
  auto payload = store_.payload(job.id);
  if (!payload) {
    const Outcome outcome =
        runner::not_launched(FailureKind::Unknown, "read what to run", payload.error());
    post_(engine::event::AttemptEnded{job.id, attempt.number, outcome});
    return;
  }
  order.payload = std::move(*payload);

  runner::Surroundings surroundings;
  surroundings.socket = socket_;
  surroundings.log_path = runner_.log_path(job.id);
  surroundings.config_path = runner_.config_path(job.id, attempt.number, order.payload);
  const runner::PortBlock ports = ports_for(job.id);
  surroundings.port_base = ports.base;
  surroundings.port_count = ports.count;
  surroundings.host = os::host_name();
  order.environment =
      runner::environment_of(job, attempt, order.payload, state_.machine(), surroundings);
  runner_.launch(order);
}

runner::Adoption RunnerHands::adopt(const Job& job) {
  const Attempt& attempt = *attempt_of(job);
  const bool started = std::holds_alternative<Running>(job.state);
  auto adoption = runner_.adopt(
      job.id,
      attempt.number,
      attempt.boot_id,
      started ? runner::Runner::Progress::Started : runner::Runner::Progress::Committed);
  const bool may_run = std::holds_alternative<runner::StillRuns>(adoption) ||
                       std::holds_alternative<runner::Unknown>(adoption);
  if (may_run) read_ports(job.id, attempt.number);
  return adoption;
}

void RunnerHands::stop(const Job& job) {
  const Attempt* attempt = attempt_of(job);
  if (attempt == nullptr || !is_active(job)) return;
  std::optional<Stop> stop;
  if (const auto* starting = std::get_if<Starting>(&job.state)) stop = starting->stop;
  if (const auto* running = std::get_if<Running>(&job.state)) stop = running->stop;
  const bool preempted = stop && stop->reason == EndReason::Preempted;
  int signal = stop ? stop->signal : 0;
  if (preempted && signal == 0) signal = job.spec.preempt_signal;
  runner_.stop(
      job.id, attempt->number, signal, preempted ? EndReason::Preempted : EndReason::Cancelled);
}

void RunnerHands::suspend(const Job& job) { runner_.suspend(job.id, attempt_of(job)->number); }

void RunnerHands::resume(const Job& job) { runner_.resume(job.id, attempt_of(job)->number); }

void RunnerHands::change_limit(const Job& job) {
  runner_.change_limit(job.id, attempt_of(job)->number, job.spec.time_limit);
}

void RunnerHands::forget_attempt(JobId job, int attempt) {
  ports_.erase(job);
  ports_unread_.erase({job, attempt});
  runner_.forget(job, attempt);
}

void RunnerHands::forget_job(JobId job) { remover_.remove(runner_.log_path(job)); }

std::string RunnerHands::largest_log() const {
  const Job* largest = nullptr;
  Memory size;
  for (const Job* job : state_.list({.statuses = kActive})) {
    struct stat facts{};
    if (::stat(runner_.log_path(job->id).c_str(), &facts) != 0) continue;
    if (largest != nullptr && facts.st_size <= size.bytes) continue;
    largest = job;
    size = Memory{facts.st_size};
  }
  if (largest == nullptr) return {};
  return fmt::format("the largest log of a running job is that of job {} of {} ({})",
                     largest->id.value,
                     printable(largest->spec.user.name),
                     memory_text(size));
}

}  // namespace gflow::daemon
