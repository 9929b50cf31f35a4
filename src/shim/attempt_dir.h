// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "attempt/exit_record.h"
#include "attempt/order.h"
#include "shim/fd.h"
#include "shim/io.h"

namespace gflow::shim {

/// Whether this shim may run the attempt.
enum class ClaimResult { Mine, Revoked };

/// The directory of one attempt, opened once and addressed through its descriptor. While this
/// lives, the kernel-held lock on the file `lock` says that the attempt is supervised.
class AttemptDir {
 public:
  /// Opens and locks. Errors also if another shim has it.
  [[nodiscard]] static Outcome<AttemptDir> open(const std::string& path);

  [[nodiscard]] Outcome<attempt::Order> read_order() const;
  /// Allocates the exit record, while there is still somebody to be told that the disk is full.
  [[nodiscard]] Outcome<void> allocate_record();
  /// Takes the attempt unless the daemon has revoked it.
  [[nodiscard]] Outcome<ClaimResult> claim(const std::string& boot_id) const;
  /// Where the job's first process leaves its pid, behind the record, before it runs its program.
  [[nodiscard]] const Fd& record() const { return record_; }
  /// Overwrites the next slot of the record and waits until it is on disk.
  [[nodiscard]] Outcome<void> store(const attempt::ExitRecord& record);

 private:
  AttemptDir(Fd dir, Fd lock) : dir_(std::move(dir)), lock_(std::move(lock)) {}

  Fd dir_;
  Fd lock_;
  Fd record_;
  std::uint32_t sequence_ = 0;
};

}  // namespace gflow::shim
