// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "api/gpu_resources.h"
#include "client/client.h"
#include "os/fd.h"

namespace gflow::cli {

/// What is waited for.
enum class Until {
  Granted,  ///< it has its GPUs, or never will
  Over,     ///< it has them no more
};

/// Follows an allocation from a thread of its own, so that whoever waits can wait for something
/// else, too. A long poll cannot be broken off: that thread is left behind.
class Follower {
 public:
  Follower(client::Client daemon, JobId allocation, Until until);

  /// Readable once there is an answer.
  [[nodiscard]] int fd() const;
  /// How it stands then; once.
  [[nodiscard]] Result<api::GpuAllocation> answer() const;

 private:
  struct Mailbox;
  std::shared_ptr<Mailbox> mailbox_;
};

}  // namespace gflow::cli
