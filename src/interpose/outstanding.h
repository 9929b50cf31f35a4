// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cuda/abi.h"

/// What this process has launched and the devices have not done yet: an event behind the last
/// launch of each stream. Any thread.
namespace gflow::interpose {

/// The functions of a stream as NAME or as NAME_ptsz.
struct LaunchCalls {
  cuda::abi::call::cuStreamIsCapturing* is_capturing;
  cuda::abi::call::cuEventRecord* record;
  bool has_thread_streams;  ///< no stream means the calling thread's
};

/// Something was launched into the stream, in the calling thread's context.
void note_launch(std::size_t device, cuda::abi::Stream stream, const LaunchCalls& calls);

/// Whether the device has done all of it. Asks the driver, with the calling thread's context set to
/// whichever it is about, and waits for nothing.
[[nodiscard]] bool is_all_done(std::size_t device);

/// While a context may be going, and its events with it: what was launched in it is not done, and
/// the driver is not asked of it. What was known stays, unless `forget` was told that it is gone.
class LaunchesSetAside {
 public:
  explicit LaunchesSetAside(cuda::abi::Context context);
  ~LaunchesSetAside();
  LaunchesSetAside(const LaunchesSetAside&) = delete;
  LaunchesSetAside& operator=(const LaunchesSetAside&) = delete;

  void forget();

 private:
  cuda::abi::Context context_;
};
/// Before the driver goes, at the end of the process: it is not asked any more.
void end_launches();
/// In the child of a fork.
void forget_outstanding();

}  // namespace gflow::interpose
