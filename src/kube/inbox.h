// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::kube {

/// What other threads have the one do that owns the scheduler, in the order in which they ask.
class Inbox {
 public:
  using Task = std::function<void()>;

  [[nodiscard]] static Result<Inbox> open();
  Inbox(Inbox&& other) noexcept : ready_(std::move(other.ready_)) {}

  void post(Task task);
  /// All there is now.
  [[nodiscard]] std::vector<Task> take();
  [[nodiscard]] int fd() const { return ready_.get(); }  ///< readable when there is something

 private:
  explicit Inbox(os::Fd ready) : ready_(std::move(ready)) {}
  os::Fd ready_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace gflow::kube
