// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "core/job.h"
#include "core/requests.h"

namespace gflow::engine {

/// What jobs are chosen and sorted by, without a copy of them. Good until the next step() or
/// list_some() of the State it is of.
struct Glance {
  JobId id;
  std::string_view given_name;  ///< "" where is_named_by_id
  bool is_named_by_id = false;
  /// But for name and command, which may be empty here.
  const JobSpec* spec = nullptr;
  Status status = Status::Queued;
  WallTime submitted;
  const Job* job = nullptr;  ///< the whole of it; null for one that waits and never ran

  [[nodiscard]] std::string name() const {
    return is_named_by_id ? made_up_name(id.value) : std::string(given_name);
  }
};

[[nodiscard]] Glance glance_at(const Job& job);

}  // namespace gflow::engine
