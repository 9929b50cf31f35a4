// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/job.h"
#include "core/job_range.h"

namespace gflow::engine {

/// What jobs are chosen and sorted by, without a copy of them. Good until the next step() or
/// list_some() of the State it is of.
struct Glance {
  JobId id;
  /// Its own, or that of the job so many before it that names it: see name().
  std::string_view given_name;
  Naming naming{};
  std::uint64_t after_named = 0;
  /// But for name and command, which may be empty here.
  const JobSpec* spec = nullptr;
  Status status = Status::Queued;
  WallTime submitted;
  std::chrono::milliseconds lived{};
  const Job* job = nullptr;  ///< the whole of it; null for one that waits and never ran

  /// Whether given_name is its name.
  [[nodiscard]] bool has_given_name() const {
    return !naming.by_id && (naming.step == 0 || after_named == 0);
  }
  [[nodiscard]] std::string name() const {
    return name_after(given_name, JobId(id.value - after_named), naming, after_named);
  }
};

[[nodiscard]] Glance glance_at(const Job& job);

}  // namespace gflow::engine
