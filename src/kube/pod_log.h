// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "kube/access.h"
#include "kube/credentials.h"
#include "server/service.h"

/// What the container of a pod writes, as its kubelet keeps it and the API server passes it on.
namespace gflow::kube {

/// Pods of which the newest that has begun is meant.
struct PodsOfLog {
  std::string name_space;
  std::string selector;  ///< "labelSelector=..."
  std::string owner;     ///< path of the object that may make more of them; "": nothing does
};
[[nodiscard]] PodsOfLog one_pod(const std::string& name_space, const std::string& name);
[[nodiscard]] PodsOfLog pods_of_job(const std::string& name_space, const std::string& job);

/// Reads logs with the rights of who runs this. Any thread; outlives what it gives.
class PodLogs {
 public:
  PodLogs(const Access& access, Credentials& credentials)
      : access_(access), credentials_(credentials) {}
  /// Waits for the threads of logs that are followed, whose bodies are to be let go of before.
  ~PodLogs();
  PodLogs(const PodLogs&) = delete;
  PodLogs& operator=(const PodLogs&) = delete;

  [[nodiscard]] server::Service::DistantLog of(const PodsOfLog& pods);

 private:
  [[nodiscard]] std::shared_ptr<server::Body> follow(const PodsOfLog& pods,
                                                     std::uint64_t from,
                                                     std::optional<std::uint64_t> lines);

  const Access& access_;
  Credentials& credentials_;
  std::mutex mutex_;
  std::condition_variable ended_;
  int threads_ = 0;  ///< guarded by mutex_
};

}  // namespace gflow::kube
