// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::slurm {

/// A submission that is under way, so that none is made twice however a gflow-slurm ends: its
/// sbatch may go on without it, and Slurm may take what that sent after it was killed. Each process
/// of this user on this machine knows of it by a file, of which a submission has one byte, by its
/// key: the byte is locked until gflow-slurm and its sbatch have ended, and says whether what
/// became of it was heard. Two keys that have the same byte wait for each other, and no more.
class UnderWay {
 public:
  /// Waits for whoever else submits by this key, no longer than `most`. Errors: Timeout; those of
  /// the file.
  [[nodiscard]] static Result<UnderWay> begin(const std::string& key,
                                              std::chrono::milliseconds most);

  /// An earlier one began and was not heard of again.
  [[nodiscard]] bool was_cut_short() const { return was_cut_short_; }
  /// Whoever keeps it open keeps the submission under way.
  [[nodiscard]] int descriptor() const { return file_.get(); }
  /// What became of it is known.
  [[nodiscard]] Result<void> is_heard_of();

 private:
  UnderWay(os::Fd file, off_t place, bool was_cut_short)
      : file_(std::move(file)), place_(place), was_cut_short_(was_cut_short) {}

  os::Fd file_;
  off_t place_;
  bool was_cut_short_;
};

}  // namespace gflow::slurm
