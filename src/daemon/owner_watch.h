// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/job.h"
#include "os/fd.h"
#include "server/holder.h"
#include "store/store.h"

namespace gflow::daemon {

/// The processes that allocations in the queue are for: one that ends takes its allocation out of
/// it. Those that have their GPUs watch by themselves. Runs on the loop's thread.
class OwnerWatch {
 public:
  /// Borrows the store for its lifetime. `on_gone` is called from the loop, once for a job.
  OwnerWatch(boost::asio::io_context& io, store::Store& store, std::function<void(JobId)> on_gone);

  /// How a job stands now.
  void see(const Job& job);

 private:
  using Descriptor = boost::asio::posix::stream_descriptor;
  struct Watched {
    std::vector<server::ProcessId> processes;
    std::deque<Descriptor> held;  ///< that tell at once; none of those that are looked at in turn
  };
  void watch(JobId job);
  void look(JobId job);
  [[nodiscard]] bool hold(JobId job, Watched& watched);
  void look_in_turn();
  void wait_for_turn();
  void forget(JobId job);
  void tell(JobId job);

  boost::asio::io_context& io_;
  store::Store& store_;
  std::function<void(JobId)> on_gone_;
  std::size_t free_files_;  ///< of those that processes may be held with
  std::map<JobId, Watched> watched_;
  std::set<JobId> in_turn_;  ///< of these, those for which there is no file
  JobId looked_at_;          ///< the last one of them
  boost::asio::steady_timer turn_;
};

}  // namespace gflow::daemon
