// SPDX-License-Identifier: Apache-2.0
#include "server/top_jobs.h"

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "core/status.h"

namespace gflow::server {
namespace {

using std::chrono::milliseconds;

/// How long it had run at that moment: one that has ended since ran until its end.
milliseconds run_time_at(const Job& job, Moment as_of) {
  const milliseconds ran = run_time_of(job, as_of.mono);
  const auto* ended = std::get_if<Ended>(&job.state);
  if (ended == nullptr || ended->lived <= as_of.lived) return ran;
  return std::max(milliseconds(0), ran - (ended->lived - as_of.lived));
}

}  // namespace

std::int64_t TopJobs::number_of(const engine::Glance& job, Moment as_of) const {
  switch (order_.key) {
    case JobKey::Id:
    case JobKey::Name:
      break;
    case JobKey::State:
      return &status_info(job.status) - kStatuses.data();
    case JobKey::Time:
      if (job.job == nullptr) break;
      return std::chrono::floor<std::chrono::seconds>(run_time_at(*job.job, as_of)).count();
    case JobKey::Gpus:
      return std::int64_t{job.spec->request.gpus} * job.spec->request.nodes;
    case JobKey::Priority:
      return job.spec->priority;
  }
  return 0;
}

bool TopJobs::is_before(const Key& a, const Key& b) const {
  const Key& low = order_.reversed ? b : a;
  const Key& high = order_.reversed ? a : b;
  if (order_.key == JobKey::Id && order_.descending) return high.id < low.id;
  const auto key = [](const Key& one) { return std::tie(one.number, one.text); };
  if (key(low) != key(high)) {
    return order_.descending ? key(high) < key(low) : key(low) < key(high);
  }
  return low.id < high.id;
}

void TopJobs::add(const engine::Glance& job, Moment as_of) {
  std::string made;  // of a job whose name follows from another's there is none to look at
  Key key{number_of(job, as_of), "", job.id};
  if (order_.key == JobKey::Name && sight_.names(job.spec->user)) {
    if (!job.has_given_name()) made = job.name();
    key.text = job.has_given_name() ? job.given_name : std::string_view(made);
  }
  if (after_ && !is_before(key_of(*after_), key)) return;
  const auto before = [this](const SortPlace& a, const SortPlace& b) {
    return is_before(key_of(a), key_of(b));
  };
  if (heap_.size() == most_) {
    if (most_ == 0 || !is_before(key, key_of(heap_.front()))) return;
    std::ranges::pop_heap(heap_, before);
    heap_.pop_back();
  }
  heap_.push_back({key.number, std::string(key.text), key.id});
  std::ranges::push_heap(heap_, before);
}

std::vector<SortPlace> TopJobs::take() {
  std::ranges::sort_heap(heap_, [this](const SortPlace& a, const SortPlace& b) {
    return is_before(key_of(a), key_of(b));
  });
  return std::exchange(heap_, {});
}

}  // namespace gflow::server
