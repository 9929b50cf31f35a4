// SPDX-License-Identifier: Apache-2.0
#include "server/worker.h"

#include "os/signals.h"

namespace gflow::server {

Worker::Worker() {
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([this] { serve(); });
}

Worker::~Worker() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Worker::run(std::uint32_t uid, std::function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push(uid, std::move(work));
  }
  changed_.notify_one();
}

void Worker::go_on(std::uint32_t uid, std::function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    queue_.push_front(uid, std::move(work));
  }
  changed_.notify_one();
}

void Worker::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || queue_.ready(); });
    if (stop_) return;
    FairQueue::Work work = queue_.pop();
    lock.unlock();
    work();
    work = nullptr;  // what it holds is let go of here, too
    lock.lock();
  }
}

}  // namespace gflow::server
