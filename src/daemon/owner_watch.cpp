// SPDX-License-Identifier: Apache-2.0
#include "daemon/owner_watch.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "core/file_budget.h"
#include "os/host.h"
#include "os/process.h"

namespace gflow::daemon {

OwnerWatch::OwnerWatch(boost::asio::io_context& io,
                       store::Store& store,
                       std::function<void(JobId)> on_gone)
    : io_(io),
      store_(store),
      on_gone_(std::move(on_gone)),
      free_files_(file_budget(os::open_file_limit()).watches),
      turn_(io) {}

void OwnerWatch::see(const Job& job) {
  if (!job.spec.allocation) return;
  if (!is_pending(job)) {
    forget(job.id);
  } else if (!watched_.contains(job.id)) {
    watch(job.id);
  }
}

void OwnerWatch::watch(JobId job) {
  const auto payload = store_.payload(job);
  if (!payload) return;  // the disk is full, and it is not written yet
  auto processes = server::waiting_processes(*payload);
  if (processes.empty()) return;
  watched_[job].processes = std::move(processes);
  look(job);
}

void OwnerWatch::look(JobId job) {
  Watched& watched = watched_.at(job);
  for (const server::ProcessId& process : watched.processes) {
    const auto facts = os::find_process(process.pid);
    if (!facts) continue;  // which says nothing of it
    if (!*facts || (*facts)->start_time != process.start_time) {
      return boost::asio::post(io_, [this, job] { tell(job); });
    }
  }
  if (hold(job, watched)) return;
  in_turn_.insert(job);
  if (in_turn_.size() == 1) wait_for_turn();
}

/// False if there are no files for it.
bool OwnerWatch::hold(JobId job, Watched& watched) {
  if (watched.processes.size() > free_files_) return false;
  std::deque<Descriptor> held;
  for (const server::ProcessId& process : watched.processes) {
    os::Fd descriptor = os::hold_process(process.pid, process.start_time);
    boost::system::error_code error;
    if (descriptor.valid()) held.emplace_back(io_).assign(descriptor.get(), error);
    if (!descriptor.valid() || error) return false;
    (void)descriptor.release();
  }
  watched.held = std::move(held);
  free_files_ -= watched.held.size();
  for (Descriptor& descriptor : watched.held) {
    descriptor.async_wait(Descriptor::wait_read,
                          [this, job](const boost::system::error_code& failed) {
                            if (!failed) tell(job);
                          });
  }
  return true;
}

void OwnerWatch::wait_for_turn() {
  constexpr std::chrono::seconds kEvery{1};
  turn_.expires_after(kEvery);
  turn_.async_wait([this](const boost::system::error_code& failed) {
    if (!failed) look_in_turn();
  });
}

/// At so many of them that nobody waits for it.
void OwnerWatch::look_in_turn() {
  constexpr std::size_t kAtOnce = 100;
  std::vector<JobId> next;
  for (std::size_t left = std::min(kAtOnce, in_turn_.size()); left > 0; --left) {
    auto at = in_turn_.upper_bound(looked_at_);
    if (at == in_turn_.end()) at = in_turn_.begin();
    looked_at_ = *at;
    next.push_back(*at);
  }
  for (const JobId job : next) {
    in_turn_.erase(job);
    look(job);
  }
  if (!in_turn_.empty()) wait_for_turn();
}

void OwnerWatch::forget(JobId job) {
  const auto watched = watched_.extract(job);
  if (watched.empty()) return;
  free_files_ += watched.mapped().held.size();
  in_turn_.erase(job);
}

void OwnerWatch::tell(JobId job) {
  if (!watched_.contains(job)) return;
  forget(job);
  on_gone_(job);
}

}  // namespace gflow::daemon
