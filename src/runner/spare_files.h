// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "runner/attempt_files.h"

namespace gflow::runner {

/// Directories of attempts that are over, for those of attempts to come: making files and removing
/// them again is most of what a short job costs. One that is spare has the files an attempt has,
/// which say nothing of any, and is claimed by nobody. One thread.
class SpareFiles {
 public:
  explicit SpareFiles(std::string attempts_dir) : attempts_dir_(std::move(attempts_dir)) {}
  /// Those left in a directory of attempts by a process that is no more.
  [[nodiscard]] static std::vector<std::string> left_in(const std::string& attempts_dir);

  /// Keeps the directory of an attempt whose supervisor has ended and which has neither script nor
  /// configuration. False if it is to be removed: there are enough, or it cannot be kept.
  [[nodiscard]] bool keep(const AttemptFiles& files);
  /// Makes one the directory of an attempt, with its order. False if a new one is to be made.
  /// Errors: EEXIST, as AttemptFiles::create().
  [[nodiscard]] Result<bool> use(const AttemptFiles& files, std::string_view order, mode_t mode);

 private:
  std::string attempts_dir_;
  std::vector<std::string> spare_;
  std::uint64_t made_ = 0;  ///< names given so far
};

}  // namespace gflow::runner
