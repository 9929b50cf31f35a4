// SPDX-License-Identifier: Apache-2.0
#include "server/job_statistics.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "server/counters.h"
#include "server/waits.h"

namespace gflow::server {
namespace {

using std::chrono::milliseconds;

double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// The smallest that so many percent are not longer than. REQUIRES: sorted, not empty.
milliseconds percentile(const std::vector<milliseconds>& sorted, std::size_t percent) {
  constexpr std::size_t kAll = 100;
  const std::size_t rank = (sorted.size() * percent + kAll - 1) / kAll;
  return sorted.at(std::max<std::size_t>(rank, 1) - 1);
}

api::TimesView times_of(std::vector<milliseconds> times) {
  api::TimesView view;
  view.count = times.size();
  if (times.empty()) return view;
  std::ranges::sort(times);
  const auto sum = std::accumulate(times.begin(), times.end(), milliseconds(0));
  view.mean = sum / static_cast<std::int64_t>(times.size());
  view.median = percentile(times, 50);
  view.p90 = percentile(times, 90);
  view.p99 = percentile(times, 99);
  view.most = times.back();
  return view;
}

}  // namespace

void JobStatistics::Usage::add_active(const JobSpec& spec) {
  view.gpus_held += server::gpus_held(spec);
}

/// What never ran did not wait for anything that can be compared; one that ended while it was
/// queued again held GPUs before.
void JobStatistics::Usage::add_ended(const engine::State& state,
                                     const Job& job,
                                     const Ended& ended) {
  view.gpu_seconds += seconds_of(gpu_time_of(job, ended));
  if (!ended.attempt) return;
  waits.push_back(std::max(milliseconds(0), waited(state, job, *ended.attempt) - job.served));
  run_times.push_back(ended.outcome.run_time);
  view.cpu_seconds += seconds_of(ended.outcome.cpu_time);
}

api::UsageView JobStatistics::Usage::finish() && {
  view.waits = times_of(std::move(waits));
  view.run_times = times_of(std::move(run_times));
  return std::move(view);
}

bool JobStatistics::is_in_time(WallTime ended) const {
  return (!wish_.since || ended >= *wish_.since) && (!wish_.until || ended < *wish_.until);
}

JobStatistics::Usage* JobStatistics::part_of(const JobSpec& spec) {
  if (wish_.by == StatisticsWish::By::None) return nullptr;
  const std::string project = sight_.names(spec.user) ? spec.project : "";
  const std::string& name = wish_.by == StatisticsWish::By::User ? spec.user.name : project;
  Usage& part = parts_[name];
  part.view.name = name;
  return &part;
}

void JobStatistics::add(const engine::Glance& job) {
  const Ended* ended = job.job == nullptr ? nullptr : std::get_if<Ended>(&job.job->state);
  if (ended != nullptr && !is_in_time(ended->at)) return;
  for (Usage* usage : {&total_, part_of(*job.spec)}) {
    if (usage == nullptr) continue;
    usage->view.states.add(job.status);
    if (ended != nullptr) usage->add_ended(state_, *job.job, *ended);
    // A suspended job has given its GPUs' compute back.
    if (is_active(job.status) && job.status != Status::Suspended) usage->add_active(*job.spec);
  }
}

void JobStatistics::counted() { known_since_ = state_.forgotten(); }

api::StatisticsView JobStatistics::finish(WallTime now) && {
  constexpr std::array<std::string_view, 3> kBy = {"none", "user", "project"};
  api::StatisticsView view;
  view.at = now;
  view.since = wish_.since;
  view.until = wish_.until;
  // A clock that was set back since is not waited for.
  if (known_since_) view.known_since = std::min(*known_since_, now);
  view.total = std::move(total_).finish();
  view.by = kBy.at(static_cast<std::size_t>(wish_.by));
  for (auto& [name, part] : parts_) view.parts.push_back(std::move(part).finish());
  return view;
}

}  // namespace gflow::server
