// SPDX-License-Identifier: Apache-2.0
#include "dra/periodic.h"

#include <utility>

namespace gflow::dra {

Periodic::Periodic(std::chrono::milliseconds pause, std::function<void()> act)
    : pause_(pause), act_(std::move(act)), thread_([this] { run(); }) {}

Periodic::~Periodic() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Periodic::now() {
  {
    const std::lock_guard lock(mutex_);
    is_wanted_ = true;
  }
  changed_.notify_all();
}

void Periodic::run() {
  std::unique_lock lock(mutex_);
  while (!is_ended_) {
    is_wanted_ = false;
    lock.unlock();
    act_();
    lock.lock();
    changed_.wait_for(lock, pause_, [this] { return is_wanted_ || is_ended_; });
  }
}

}  // namespace gflow::dra
