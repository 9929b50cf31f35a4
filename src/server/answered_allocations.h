// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/job_id.h"
#include "os/fd.h"

namespace gflow::server {

/// Of which allocations their clients may know: a file beside the database that has a line for
/// each, written right before its answer is, so that the next gflowd can tell even after one that
/// was killed. It is not synced: that outlives the daemon, and after a power failure, as with
/// anything else that leaves a doubt, all may be known.
class AnsweredAllocations {
 public:
  /// Reads what the gflowd before left.
  AnsweredAllocations(std::string path, std::string boot_id);

  /// Whether it was noted before this daemon, or that is not known.
  [[nodiscard]] bool may_be_known(JobId allocation) const;
  /// Begins the file anew with those there are. Before the first note().
  void begin(const std::vector<JobId>& allocations);
  /// From any thread.
  void note(JobId allocation) const;

 private:
  void forget_all() const;

  std::string path_;
  std::string boot_id_;
  std::optional<std::set<JobId>> known_;  ///< none: nobody knows
  os::Fd file_;
};

}  // namespace gflow::server
