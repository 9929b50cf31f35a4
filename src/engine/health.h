// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>

#include "core/job.h"

namespace gflow::engine {

/// What failed launches say of a node. After each one nothing is launched there for a pause, which
/// doubles; then one job is launched to find out whether the node is well again.
struct NodeHealth {
  std::string node{};
  std::string reason{};          ///< of the last failed launch
  int failures = 0;              ///< in a row
  MonoTime retry_at{};           ///< until then nothing is launched there
  std::optional<JobId> trial{};  ///< the job launched to find out; nothing else is, meanwhile
  std::set<JobId> tried{};       ///< jobs that failed there meanwhile: others are tried first

  friend bool operator==(const NodeHealth&, const NodeHealth&) = default;
};

/// Whether nothing may be launched there now.
[[nodiscard]] inline bool is_closed(const NodeHealth& health, MonoTime now) {
  return health.trial.has_value() || now < health.retry_at;
}

}  // namespace gflow::engine
