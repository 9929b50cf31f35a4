// SPDX-License-Identifier: Apache-2.0
#include "daemon/job_watch.h"

#include <algorithm>
#include <chrono>

#include "server/waits.h"

namespace gflow::daemon {
namespace {

using Seconds = std::chrono::duration<double>;

}  // namespace

void JobWatch::know(const Job& job) {
  if (const Attempt* attempt = attempt_of(job)) {
    running_[job.id] = {attempt->number, job.preemptions, job.retries};
  }
}

void JobWatch::see(const Job& job, const std::string& trace_id) {
  const auto found = running_.find(job.id);
  const Known before = found == running_.end() ? Known{} : found->second;
  const Attempt* attempt = attempt_of(job);
  const bool is_new = attempt != nullptr && attempt->number > before.attempt;
  const auto* ended = std::get_if<Ended>(&job.state);
  // It may have been queued again and started again since.
  if (found != running_.end() && (is_new || (attempt == nullptr && ended == nullptr))) {
    using server::Requeue;
    const Requeue cause = job.preemptions > before.preemptions ? Requeue::Preempted
                          : job.retries > before.retries       ? Requeue::Failed
                                                               : Requeue::Lost;
    ++counters_.requeued.at(static_cast<std::size_t>(cause));
  }
  if (is_new) see_start(job, *attempt, trace_id);
  if (is_active(job)) return know(job);
  if (ended != nullptr) see_end(job, *ended, trace_id);
  if (found != running_.end()) running_.erase(found);
}

void JobWatch::see_start(const Job& job, const Attempt& attempt, const std::string& trace_id) {
  ++counters_.started;
  if (attempt.number > 1) return;
  const double waited = Seconds(server::waited(state_, job, attempt)).count();
  counters_.wait.observe(waited, server::Exemplar{job.id.value, trace_id, waited, attempt.started});
}

void JobWatch::see_end(const Job& job, const Ended& ended, const std::string& trace_id) {
  ++counters_.ended.at(static_cast<std::size_t>(ended.status));
  counters_.gpu_seconds += Seconds(gpu_time_of(job, ended)).count();
  if (!ended.attempt) return;
  const double ran = Seconds(job.served + ended.outcome.run_time).count();
  counters_.run_time.observe(ran, server::Exemplar{job.id.value, trace_id, ran, ended.at});
}

}  // namespace gflow::daemon
