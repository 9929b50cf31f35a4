// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <string>

#include "core/job.h"

namespace gflow {

/// What failed launches say of a node. After each one nothing is launched there for a pause, which
/// doubles; then one job is launched to find out whether the node is well again.
struct NodeHealth {
  std::string node{};
  std::string reason{};  ///< of the last failed launch
  int failures = 0;      ///< in a row
  /// Until then nothing is launched there, on the time gflow sees pass (Job::lived).
  std::chrono::milliseconds retry_at{0};
  std::optional<JobId> trial{};  ///< the job launched to find out; nothing else is, meanwhile
  std::set<JobId> tried{};       ///< jobs that failed there meanwhile: others are tried first

  friend bool operator==(const NodeHealth&, const NodeHealth&) = default;
};

}  // namespace gflow
