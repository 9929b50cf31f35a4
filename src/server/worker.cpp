// SPDX-License-Identifier: Apache-2.0
#include "server/worker.h"

#include <pthread.h>

#include <csignal>

namespace gflow::server {

Worker::Worker() {
  // Signals are the loop's: the thread starts with all of them blocked.
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { serve(); });
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
