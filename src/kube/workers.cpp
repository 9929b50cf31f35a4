// SPDX-License-Identifier: Apache-2.0
#include "kube/workers.h"

#include <utility>

namespace gflow::kube {

Workers::Workers(const Access& access, Credentials& credentials, int threads) {
  for (int i = 0; i < threads; ++i) {
    Api& api = *apis_.emplace_back(std::make_unique<Api>(access, credentials));
    threads_.emplace_back([this, &api] { work(api); });
  }
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  threads_.clear();
}

void Workers::urgent(Task task) {
  {
    const std::lock_guard lock(mutex_);
    urgent_.push_back(std::move(task));
  }
  changed_.notify_one();
}

void Workers::urgent_after(std::chrono::milliseconds time, Task task) {
  {
    const std::lock_guard lock(mutex_);
    delayed_.emplace(Clock::now() + time, std::move(task));
  }
  changed_.notify_all();  // who waits, waits until the first of these
}

void Workers::later(Task task) {
  {
    const std::lock_guard lock(mutex_);
    later_.push_back(std::move(task));
  }
  changed_.notify_one();
}

std::size_t Workers::backlog() const {
  const std::lock_guard lock(mutex_);
  return later_.size();
}

/// An empty one at the end.
Workers::Task Workers::next() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    while (!delayed_.empty() && delayed_.begin()->first <= Clock::now()) {
      urgent_.push_back(std::move(delayed_.begin()->second));
      delayed_.erase(delayed_.begin());
    }
    std::deque<Task>& from = urgent_.empty() ? later_ : urgent_;
    if (!from.empty()) {
      Task task = std::move(from.front());
      from.pop_front();
      return task;
    }
    if (delayed_.empty()) {
      changed_.wait(lock);
    } else {
      const Clock::time_point due = delayed_.begin()->first;  // others may take it meanwhile
      changed_.wait_until(lock, due);
    }
  }
  return {};
}

void Workers::work(Api& api) {
  while (const Task task = next()) task(api);
}

}  // namespace gflow::kube
