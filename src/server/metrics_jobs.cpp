// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "server/metric_family.h"

/// Who uses what: series with labels of jobs and people, which only a setting brings. They are of
/// what runs, and no more than some thousand, whatever is queued.
namespace gflow::server {
namespace {

constexpr std::size_t kMostJobs = 5'000;
constexpr std::size_t kMostUsers = 200;

void add_running(MetricFamilies& all,
                 const JobSight& sight,
                 const Service& service,
                 const std::vector<const Job*>& jobs) {
  MetricFamily gpus =
      MetricFamily::gauge("gflow_job_gpus", "GPUs a running job has; a share counts as its part.");
  MetricFamily time = MetricFamily::gauge("gflow_job_run_seconds", "How long it runs.");
  MetricFamily memory = MetricFamily::gauge("gflow_job_gpu_memory_used_bytes",
                                            "Memory of its GPUs it is seen to use.");
  MetricFamily parked = MetricFamily::gauge(
      "gflow_job_gpu_memory_parked_bytes", "GPU memory of a suspended job that is in host memory.");
  MetricFamily idle = MetricFamily::gauge(
      "gflow_job_gpu_idle_seconds", "For how long no kernel was seen on any GPU of a running job.");
  const MonoTime now = service.now().mono;
  for (const Job* job : std::span(jobs).first(std::min(jobs.size(), kMostJobs))) {
    const MetricLabels labels = {{"job_id", std::to_string(job->id.value)},
                                 {"user", job->spec.user.name},
                                 {"project", sight.names(job->spec.user) ? job->spec.project : ""}};
    gpus.add(labels, gpus_held(job->spec));
    time.add(labels, std::chrono::duration<double>(run_time_of(*job, now)).count());
    const auto uses = service.state().gpu_memory_of(*job);
    double used = 0;
    for (const GpuMemoryUse& use : uses) used += static_cast<double>(use.used.bytes);
    memory.add(labels, uses.empty() ? std::nullopt : std::optional(used));
    const auto* state = std::get_if<Running>(&job->state);
    if (state != nullptr && state->parked.how == Parking::Parked) {
      parked.add(labels, static_cast<double>(state->parked.memory.bytes));
    }
    if (const auto since = service.state().gpu_idle(*job, service.now())) {
      idle.add(labels, static_cast<double>(since->count()));
    }
  }
  for (MetricFamily* family : {&gpus, &time, &memory, &parked, &idle}) {
    if (!family->empty()) all.push_back(std::move(*family));
  }
}

struct Has {
  double gpus = 0;
  double jobs = 0;
};

void add_users(MetricFamilies& all, const std::vector<const Job*>& jobs) {
  std::map<std::string, Has> by_user;
  for (const Job* job : jobs) {
    Has& has = by_user[job->spec.user.name];
    has.gpus += gpus_held(job->spec);
    has.jobs += 1;
  }
  std::vector<std::pair<std::string, Has>> users(by_user.begin(), by_user.end());
  std::ranges::stable_sort(
      users, std::greater(), [](const auto& user) { return user.second.gpus; });
  for (std::size_t i = kMostUsers; i < users.size(); ++i) {
    if (i > kMostUsers) {
      users[kMostUsers].second.gpus += users[i].second.gpus;
      users[kMostUsers].second.jobs += users[i].second.jobs;
    }
  }
  if (users.size() > kMostUsers) {
    users.resize(kMostUsers + 1);
    users.back().first = "(others)";
  }
  MetricFamily gpus = MetricFamily::gauge("gflow_user_gpus", "GPUs that a user's jobs have.");
  MetricFamily running = MetricFamily::gauge("gflow_user_jobs_running", "Jobs of a user that run.");
  for (const auto& [name, has] : users) {
    gpus.add({{"user", name}}, has.gpus);
    running.add({{"user", name}}, has.jobs);
  }
  if (users.empty()) return;
  all.push_back(std::move(gpus));
  all.push_back(std::move(running));
}

}  // namespace

void add_job_metrics(MetricFamilies& all, const Principal& caller, const Service& service) {
  const settings::Metrics wanted = service.metrics_wanted();
  if (!wanted.jobs && !wanted.users) return;
  const JobSight sight = sight_of(caller);
  const std::vector<const Job*> running =
      service.state().list({.statuses = kActive, .sight = sight});
  if (wanted.jobs) add_running(all, sight, service, running);
  if (wanted.users) add_users(all, running);
}

}  // namespace gflow::server
