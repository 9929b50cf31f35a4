// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "cli/job_name.h"

namespace gflow::cli {

namespace {

std::string ids_text(const std::vector<std::uint64_t>& numbers) {
  return ranges_text(std::span<const std::uint64_t>(numbers));
}

/// "eval" and 3 of "eval_3"; nothing if the name does not end so.
struct TaskName {
  std::string_view stem;
  std::uint64_t task = 0;
};
std::optional<TaskName> parse_task_name(std::string_view name) {
  const std::size_t line = name.rfind('_');
  if (line == std::string_view::npos || line == 0) return std::nullopt;
  const auto task = parse_number(name.substr(line + 1));
  if (!task) return std::nullopt;
  return TaskName{name.substr(0, line), *task};
}

bool may_be_folded(const api::JobView& job) {
  return is_pending(job.status) && !job.spec.group.empty();
}

bool is_alike(const api::JobView& a, const api::JobView& b) {
  return a.spec.request == b.spec.request && a.spec.time_limit == b.spec.time_limit &&
         a.spec.priority == b.spec.priority;
}

std::shared_ptr<const api::JobView> not_owned(const api::JobView* job) {
  return {std::shared_ptr<const api::JobView>(), job};
}

// As many jobs may stand between two of one row, and as many rows wait for those to come.
constexpr std::size_t kApart = 1000;

}  // namespace

FoldedJobs::FoldedJobs(std::shared_ptr<const api::JobView> first) : first_(std::move(first)) {
  add(*first_);
}

void FoldedJobs::add(const api::JobView& job) {
  ids_.push_back(job.id.value);
  const auto named = parse_task_name(first_->spec.name);
  const auto other = parse_task_name(job.spec.name);
  if (named && other && other->stem == named->stem) tasks_.push_back(other->task);
}

std::string FoldedJobs::ids() const { return ids_text(ids_); }

std::string FoldedJobs::name() const {
  if (ids_.size() == 1) return job_name_text(first_->spec);
  if (tasks_.size() < ids_.size()) {
    return tr_format("{} ({} jobs)", printable(first_->spec.group), ids_.size());
  }
  std::vector<std::uint64_t> tasks = tasks_;
  std::ranges::sort(tasks);
  const auto named = parse_task_name(first_->spec.name);
  return fmt::format("{}_[{}]", printable(named->stem), ids_text(tasks));
}

ArrayFolder::Row* ArrayFolder::row_for(const Key& key, const api::JobView& job) {
  const auto [first, last] = open_.equal_range(key);
  const auto row = std::find_if(
      first, last, [&job](const auto& entry) { return is_alike(entry.second->jobs.first(), job); });
  return row == last ? nullptr : row->second;
}

void ArrayFolder::add(std::shared_ptr<const api::JobView> job) {
  ++seen_;
  if (folding_ == Folding::None || !may_be_folded(*job)) {
    rows_.push_back({FoldedJobs(std::move(job)), seen_, open_.end()});
    return;
  }
  Key key{job->spec.user.name, job->spec.group, job->status, {}};
  if (folding_ == Folding::SameDependencies) std::get<3>(key) = job->spec.dependencies.jobs;
  if (Row* row = row_for(key, *job); row != nullptr) {
    row->jobs.add(*job);
    row->last = seen_;
    return;
  }
  rows_.push_back({FoldedJobs(std::move(job)), seen_, open_.end()});
  rows_.back().known = open_.emplace(std::move(key), &rows_.back());
}

bool ArrayFolder::is_complete(const Row& row) const {
  return row.known == open_.end() || seen_ - row.last >= kApart || rows_.size() > kApart;
}

FoldedJobs ArrayFolder::take_first() {
  FoldedJobs jobs = std::move(rows_.front().jobs);
  if (rows_.front().known != open_.end()) open_.erase(rows_.front().known);
  rows_.pop_front();
  return jobs;
}

std::vector<FoldedJobs> ArrayFolder::take_complete() {
  std::vector<FoldedJobs> taken;
  while (!rows_.empty() && is_complete(rows_.front())) taken.push_back(take_first());
  return taken;
}

std::vector<FoldedJobs> ArrayFolder::take_all() {
  std::vector<FoldedJobs> taken;
  while (!rows_.empty()) taken.push_back(take_first());
  return taken;
}

std::vector<FoldedJobs> fold_arrays(const std::vector<const api::JobView*>& jobs, Folding folding) {
  ArrayFolder folder(folding);
  for (const api::JobView* job : jobs) folder.add(not_owned(job));
  return folder.take_all();
}

std::vector<FoldedJobs> unfolded(const std::vector<const api::JobView*>& jobs) {
  return fold_arrays(jobs, Folding::None);
}

}  // namespace gflow::cli
