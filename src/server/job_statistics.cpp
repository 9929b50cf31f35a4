// SPDX-License-Identifier: Apache-2.0
#include "server/job_statistics.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

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

/// What never ran did not wait for anything that can be compared; one that ended while it was
/// queued again held GPUs before.
void JobStatistics::Usage::add_ended(const engine::State& state,
                                     const Job& job,
                                     const Ended& ended) {
  if (!ended.attempt) return;
  waits.push_back(std::max(milliseconds(0), waited(state, job, *ended.attempt) - job.served));
  run_times.push_back(ended.outcome.run_time);
  cpu_time += ended.outcome.cpu_time;
}

api::UsageView JobStatistics::Usage::finish() && {
  view.waits = times_of(std::move(waits));
  view.run_times = times_of(std::move(run_times));
  view.gpu_seconds = seconds_of(gpu_time);
  view.cpu_seconds = seconds_of(cpu_time);
  view.gpus_held = static_cast<double>(gpu_parts) / Share::kWholeParts;
  return std::move(view);
}

bool JobStatistics::is_in_time(WallTime ended) const {
  return (!wish_.since || ended >= *wish_.since) && (!wish_.until || ended < *wish_.until);
}

std::optional<std::string> JobStatistics::name_of_part(const JobSpec& spec) const {
  switch (wish_.by) {
    case api::UsageBy::None:
      return std::nullopt;
    case api::UsageBy::User:
      return spec.user.name;
    case api::UsageBy::Project:
      return sight_.names(spec.user) ? spec.project : "";
  }
  return std::nullopt;
}

JobStatistics::Usage* JobStatistics::part_of(const JobSpec& spec) {
  const auto name = name_of_part(spec);
  if (!name) return nullptr;
  Usage& part = parts_[*name];
  part.view.name = *name;
  return &part;
}

/// Of so much time that ended then, what lies in the time that is counted.
milliseconds JobStatistics::within(WallTime end, milliseconds time) const {
  const WallTime from = end - time;
  const WallTime last = wish_.until ? std::min(end, *wish_.until) : end;
  return std::max(milliseconds(0), last - (wish_.since ? std::max(from, *wish_.since) : from));
}

/// When each attempt held its GPUs is not kept, only how long: that of the last one is taken to
/// end when it did, or now, and those before it right before that.
milliseconds JobStatistics::gpu_time_within(const Job& job) const {
  WallTime end = now_.wall;
  milliseconds ran{0};
  if (const auto* ended = std::get_if<Ended>(&job.state)) {
    end = ended->at;
    if (ended->attempt) ran = ended->outcome.run_time;
  } else if (is_active(job) && attempt_of(job)->boot_id == state_.boot_id()) {
    ran = run_time_of(job, now_.mono);
    const auto* running = std::get_if<Running>(&job.state);
    if (running != nullptr && running->suspended) end -= now_.mono - *running->suspended;
  }
  const milliseconds last = gpu_time_of(job.spec.request, within(end, ran));
  const milliseconds before = within(end - ran, job.served);
  if (before == job.served) return last + job.served_gpu_time;
  const double part = seconds_of(before) / seconds_of(job.served);
  return last + std::chrono::round<milliseconds>(
                    part * std::chrono::duration<double>(job.served_gpu_time));
}

void JobStatistics::add(const engine::Glance& job) {
  const Ended* ended = job.job == nullptr ? nullptr : std::get_if<Ended>(&job.job->state);
  const bool is_counted = ended == nullptr || is_in_time(ended->at);
  const milliseconds gpu_time = job.job == nullptr ? milliseconds(0) : gpu_time_within(*job.job);
  if (!is_counted && gpu_time == milliseconds(0)) return;
  for (Usage* usage : {&total_, part_of(*job.spec)}) {
    if (usage == nullptr) continue;
    usage->gpu_time += gpu_time;
    if (!is_counted) continue;
    usage->view.states.add(job.status);
    if (ended != nullptr) usage->add_ended(state_, *job.job, *ended);
    // A suspended job has given its GPUs' compute back.
    if (is_active(job.status) && job.status != Status::Suspended) {
      usage->gpu_parts += gpu_parts_of(job.spec->request);
    }
  }
}

void JobStatistics::counted() { known_since_ = state_.forgotten(); }

api::StatisticsView JobStatistics::finish() && {
  api::StatisticsView view;
  view.at = now_.wall;
  view.since = wish_.since;
  view.until = wish_.until;
  // A clock that was set back since is not waited for.
  if (known_since_) view.known_since = std::min(*known_since_, now_.wall);
  view.total = std::move(total_).finish();
  view.others_jobs = kOthersJobsNames.at(static_cast<std::size_t>(sight_.others));
  view.by = api::usage_by_name(wish_.by);
  for (auto& [name, part] : parts_) view.parts.push_back(std::move(part).finish());
  return view;
}

}  // namespace gflow::server
