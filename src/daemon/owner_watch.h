// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>

#include "core/job.h"
#include "os/fd.h"
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
  void watch(JobId job);
  void watch(JobId job, os::Fd process);
  void tell(JobId job);

  boost::asio::io_context& io_;
  store::Store& store_;
  std::function<void(JobId)> on_gone_;
  std::size_t max_watched_;  ///< jobs, with two files each; of others it is seen once they
                             ///< have their GPUs
  std::map<JobId, std::deque<Descriptor>> watched_;
};

}  // namespace gflow::daemon
