// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "kube/api.h"

namespace gflow::kube {

/// Threads that ask the API server, each over a connection of its own. What is urgent goes before
/// all that is not; within each, first come, first served. Tasks do not sleep: what is to be done
/// later is a task of its own.
class Workers {
 public:
  using Task = std::function<void(Api&)>;

  Workers(const Access& access, Credentials& credentials, int threads);
  /// Drops what is not begun, and waits for what is.
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  void urgent(Task task);
  /// Urgent once this time is over.
  void urgent_after(std::chrono::milliseconds time, Task task);
  void later(Task task);
  /// How many of those that are not urgent wait.
  [[nodiscard]] std::size_t backlog() const;

 private:
  using Clock = std::chrono::steady_clock;
  void work(Api& api);
  [[nodiscard]] Task next();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> urgent_;
  std::deque<Task> later_;
  std::multimap<Clock::time_point, Task> delayed_;
  bool ends_ = false;
  std::vector<std::unique_ptr<Api>> apis_;
  std::vector<std::jthread> threads_;
};

}  // namespace gflow::kube
