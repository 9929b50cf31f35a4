// SPDX-License-Identifier: Apache-2.0
#include "engine/history.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace gflow::engine {

using std::chrono::seconds;

namespace {

constexpr std::size_t kOwnersLevel = 2;                   // of levels_of()
constexpr std::int64_t kFirstStep = 30;                   // seconds
constexpr std::int64_t kJob = std::int64_t{1} << 16;      // one job, in fixed point
constexpr std::int64_t kCertain = std::int64_t{1} << 20;  // chance 1
constexpr std::int64_t kAll = std::int64_t{1} << 30;      // all jobs of a what-if
constexpr std::int64_t kLongest = std::int64_t{1} << 40;  // seconds; more than any answer

constexpr std::array<std::int64_t, 10> kLimitHours = {
    1, 4, 12, 24, 3 * 24, 7 * 24, 14 * 24, 30 * 24, 60 * 24, 400 * 24};
// Half the limit is the guess for jobs with one; this for jobs without.
constexpr std::int64_t kUnknownRun = 4 * 3600;

std::int64_t begin_of(int step) { return step == 0 ? 0 : kFirstStep << (step - 1); }

std::int64_t guess(int limit_class) {
  if (limit_class == 0) return kUnknownRun;
  return kLimitHours.at(static_cast<std::size_t>(limit_class) - 1) * 3600 / 2;
}

}  // namespace

int service_step(seconds served) {
  const std::int64_t s = std::max<std::int64_t>(served.count(), 0);
  const auto width = static_cast<int>(std::bit_width(static_cast<std::uint64_t>(s / kFirstStep)));
  return std::min(width, kServiceSteps - 1);
}

seconds step_begin(int step) { return seconds(begin_of(step)); }

std::optional<seconds> until_next_step(seconds served) {
  const int step = service_step(served);
  if (step + 1 == kServiceSteps) return std::nullopt;
  return step_begin(step + 1) - served;
}

int limit_class(std::optional<seconds> limit) {
  if (!limit) return 0;
  const auto fits = [&](std::int64_t hours) { return std::chrono::hours(hours) >= *limit; };
  const auto at = std::ranges::find_if(kLimitHours, fits);
  const auto last = kLimitHours.end() - 1;
  return static_cast<int>(std::min(at, last) - kLimitHours.begin()) + 1;
}

/// From the least alike to the most.
std::vector<History::Level> History::levels_of(const Signature& signature) {
  std::vector<Level> levels;
  Signature part{.limit_class = signature.limit_class, .parts = 0, .uid = 0, .name = {}};
  levels.push_back({1, part});
  part.parts = signature.parts;
  levels.push_back({2, part});
  part.uid = signature.uid;
  levels.push_back({3, part});
  if (!signature.name.empty()) levels.push_back({4, signature});
  return levels;
}

History::Table& History::table(const Level& level) {
  const auto [at, added] = tables_.try_emplace(level);
  if (!added) by_use_.erase(at->second.used);
  at->second.used = ++uses_;
  by_use_.emplace(uses_, level);
  if (tables_.size() > std::max<std::size_t>(rules_.max_levels, 4)) {
    const auto oldest = by_use_.begin();
    tables_.erase(oldest->second);
    by_use_.erase(oldest);
  }
  return at->second;
}

void History::record(const Signature& signature, seconds before, seconds after, Seen how) {
  const int last = service_step(after);
  for (const Level& level : levels_of(signature)) {
    Table& known = table(level);
    // A job that left within a step says nothing of whether it would have ended there.
    for (int step = service_step(before); step <= last; ++step) {
      if (step == last && how == Seen::Stopped) break;
      const auto i = static_cast<std::size_t>(step);
      known.entered[i] += kJob - known.entered[i] / rules_.memory;
      known.ended[i] -= known.ended[i] / rules_.memory;
      if (step == last) known.ended[i] += kJob;
    }
    if (how == Seen::Stopped) continue;
    ++known.jobs;
    known.seconds += after.count();
    if (known.jobs < rules_.max_jobs) continue;
    known.jobs /= 2;
    known.seconds /= 2;
  }
}

seconds History::run_time(const Signature& signature) const {
  std::int64_t mean = guess(signature.limit_class);
  for (const Level& level : levels_of(signature)) {
    const auto at = tables_.find(level);
    if (at == tables_.end()) continue;
    const Table& known = at->second;
    mean = (mean * rules_.weight_mean + known.seconds) / (rules_.weight_mean + known.jobs);
  }
  return seconds(mean);
}

MeanRuns::Alike MeanRuns::of(const Signature& signature) {
  Alike alike{.limit_class = signature.limit_class};
  for (const History::Level& level : History::levels_of(signature)) {
    const auto [at, added] = numbers_.try_emplace(level, static_cast<std::uint32_t>(means_.size()));
    if (added) {
      const auto known = history_.tables_.find(level);
      const bool is_known = known != history_.tables_.end();
      means_.push_back(is_known ? Mean{known->second.jobs, known->second.seconds} : Mean{});
    }
    alike.levels.at(alike.depth++) = at->second;
  }
  return alike;
}

void MeanRuns::record(const Alike& alike, seconds took) {
  for (std::size_t i = 0; i < alike.depth; ++i) {
    Mean& mean = means_[alike.levels.at(i)];
    ++mean.jobs;
    mean.seconds += took.count();
    if (mean.jobs < history_.rules_.max_jobs) continue;
    mean.jobs /= 2;
    mean.seconds /= 2;
  }
}

seconds MeanRuns::run_time(const Alike& alike) const {
  std::int64_t mean = guess(alike.limit_class);
  const std::int64_t weight = history_.rules_.weight_mean;
  for (std::size_t i = 0; i < alike.depth; ++i) {
    const Mean& known = means_[alike.levels.at(i)];
    mean = (mean * weight + known.seconds) / (weight + known.jobs);
  }
  return seconds(mean);
}

std::int64_t MeanRuns::jobs_like(const Alike& alike) const {
  return means_[alike.levels.at(kOwnersLevel)].jobs;
}

std::int64_t History::jobs_like(const Signature& signature) const {
  const auto at = tables_.find(levels_of(signature)[kOwnersLevel]);
  return at == tables_.end() ? 0 : at->second.jobs;
}

/// Of a job that enters a step, to end within it.
Chances History::chances(const Signature& signature) const {
  Chances chances{};
  chances.fill(kCertain * rules_.chance_permille / 1000);
  const std::int64_t weight = rules_.weight_step * kJob;
  for (const Level& level : levels_of(signature)) {
    const auto at = tables_.find(level);
    if (at == tables_.end()) continue;
    const Table& known = at->second;
    for (std::size_t i = 0; i < chances.size(); ++i) {
      chances[i] = (known.ended[i] * kCertain + weight * chances[i]) / (known.entered[i] + weight);
    }
  }
  return chances;
}

/// Serves a job from the begin of its step to the end of each later one in turn: what of it is left
/// and what was spent on it, each for a job out of kAll.
seconds History::time_to_end(const Signature& signature, seconds served) const {
  const Chances chance = chances(signature);
  std::int64_t left = kAll;
  std::int64_t spent = 0;  // seconds times kAll; below 2^60 as all steps together are below 2^29
  std::int64_t best = kLongest;
  for (int step = service_step(served); step + 1 < kServiceSteps; ++step) {
    const std::int64_t length = begin_of(step + 1) - begin_of(step);
    const std::int64_t ends = left * chance[static_cast<std::size_t>(step)] / kCertain;
    spent += (left - ends) * length + ends * length / 2;  // those that end do so halfway
    left -= ends;
    if (left < kAll) best = std::min(best, spent / (kAll - left));
  }
  return seconds(best);
}

/// The median of what is left, within its step by a straight line.
seconds time_left(const Chances& chance, seconds served) {
  std::int64_t left = kAll;
  for (int step = service_step(served); step + 1 < kServiceSteps; ++step) {
    const std::int64_t from = std::max(begin_of(step), served.count());
    const std::int64_t length = begin_of(step + 1) - begin_of(step);
    const std::int64_t rest = begin_of(step + 1) - from;
    const std::int64_t all = std::min(chance[static_cast<std::size_t>(step)], kCertain - 1);
    // Of those still there at `from`: the chance of the rest of the step, by that of being there.
    const std::int64_t in_rest = all * rest / length;
    const std::int64_t ends = left * in_rest / (kCertain - all + in_rest);
    if (left - ends <= kAll / 2) {
      const std::int64_t within = rest * (left - kAll / 2) / std::max<std::int64_t>(ends, 1);
      return seconds(std::max<std::int64_t>(from + within - served.count(), 1));
    }
    left -= ends;
  }
  return seconds(begin_of(kServiceSteps - 1));
}

}  // namespace gflow::engine
