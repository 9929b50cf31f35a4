// SPDX-License-Identifier: Apache-2.0
#include "server/top_jobs.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "core/status.h"

namespace gflow::server {

TopJobs::Entry TopJobs::entry_of(const engine::Glance& job, Now now) const {
  Entry entry{.id = job.id};
  switch (order_.key) {
    case JobKey::Id:
      break;
    case JobKey::State:
      entry.number = &status_info(job.status) - kStatuses.data();
      break;
    case JobKey::Time:
      if (job.job == nullptr) break;
      entry.number =
          std::chrono::floor<std::chrono::seconds>(run_time_of(*job.job, now.mono)).count();
      break;
    case JobKey::Name:
      entry.text = job.name();
      break;
    case JobKey::Gpus:
      entry.number = std::int64_t{job.spec->request.gpus} * job.spec->request.nodes;
      break;
    case JobKey::Priority:
      entry.number = job.spec->priority;
      break;
  }
  return entry;
}

bool TopJobs::is_before(const Entry& a, const Entry& b) const {
  const Entry& low = order_.reversed ? b : a;
  const Entry& high = order_.reversed ? a : b;
  if (order_.key == JobKey::Id && order_.descending) return high.id < low.id;
  const auto key = [](const Entry& entry) { return std::tie(entry.number, entry.text); };
  if (key(low) != key(high)) {
    return order_.descending ? key(high) < key(low) : key(low) < key(high);
  }
  return low.id < high.id;
}

void TopJobs::add(const engine::Glance& job, Now now) {
  const auto before = [this](const Entry& a, const Entry& b) { return is_before(a, b); };
  Entry entry = entry_of(job, now);
  if (heap_.size() == most_) {
    if (most_ == 0 || !is_before(entry, heap_.front())) return;
    std::ranges::pop_heap(heap_, before);
    heap_.pop_back();
  }
  heap_.push_back(std::move(entry));
  std::ranges::push_heap(heap_, before);
}

std::vector<JobId> TopJobs::take() {
  std::ranges::sort_heap(heap_, [this](const Entry& a, const Entry& b) { return is_before(a, b); });
  std::vector<JobId> ids;
  for (const Entry& entry : heap_) ids.push_back(entry.id);
  heap_.clear();
  return ids;
}

}  // namespace gflow::server
