// SPDX-License-Identifier: Apache-2.0
#include "daemon/owner_watch.h"

#include <boost/asio/post.hpp>
#include <utility>

#include "os/file_budget.h"
#include "os/process.h"
#include "server/holder.h"

namespace gflow::daemon {

OwnerWatch::OwnerWatch(boost::asio::io_context& io,
                       store::Store& store,
                       std::function<void(JobId)> on_gone)
    : io_(io),
      store_(store),
      on_gone_(std::move(on_gone)),
      max_watched_(os::file_budget().watches / 2) {}

void OwnerWatch::see(const Job& job) {
  if (!job.spec.allocation) return;
  if (!is_pending(job)) {
    watched_.erase(job.id);
  } else if (!watched_.contains(job.id) && watched_.size() < max_watched_) {
    watch(job.id);
  }
}

void OwnerWatch::watch(JobId job) {
  const auto payload = store_.payload(job);
  if (!payload) return;  // the disk is full, and it is not written yet
  for (const server::ProcessId& process : server::waiting_processes(*payload)) {
    const auto facts = os::find_process(process.pid);
    if (!facts) continue;  // which says nothing of it
    if (!*facts || (*facts)->start_time != process.start_time) {
      return boost::asio::post(io_, [this, job] { tell(job); });
    }
    watch(job, os::hold_process(process.pid, process.start_time));
  }
}

void OwnerWatch::watch(JobId job, os::Fd process) {
  boost::system::error_code error;
  Descriptor descriptor(io_);
  if (process.valid()) descriptor.assign(process.get(), error);
  if (!process.valid() || error) return;
  (void)process.release();
  Descriptor& kept = watched_[job].emplace_back(std::move(descriptor));
  kept.async_wait(Descriptor::wait_read, [this, job](const boost::system::error_code& failed) {
    if (!failed) tell(job);
  });
}

void OwnerWatch::tell(JobId job) {
  watched_.erase(job);
  on_gone_(job);
}

}  // namespace gflow::daemon
