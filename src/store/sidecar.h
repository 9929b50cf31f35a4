// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "core/job.h"
#include "os/fd.h"

namespace gflow::store {

/// A file of one fixed-size line beside the database, overwritten in place so that a full disk does
/// not stop it. It knows what the database cannot tell of itself:
///  - which ids may have been given out, so that a backup put in the database's place does not give
///    them out again: `next_id` is right while this boot lasts (it is written before every commit,
///    unsynced), `reserved` is on disk and kept a block ahead of it;
///  - how many batches were committed: a database that has fewer has lost some;
///  - the digest of the database that the last run left, if it ended in order.
class Sidecar {
 public:
  /// Reads it. A content that is not understood counts as none, as does one that is not there,
  /// which begin() makes.
  [[nodiscard]] static Result<Sidecar> open(const std::string& path, const std::string& boot_id);

  /// As found by open(): whether it was there, and understood. If not, nothing is known.
  [[nodiscard]] bool is_known() const { return !found_.boot_id.empty(); }
  /// As found by open(): of the database an orderly end left; empty if that is not known.
  [[nodiscard]] const std::string& digest() const { return found_.digest; }
  /// As found by open(): batches that were certainly committed.
  [[nodiscard]] std::uint64_t commits() const { return found_.commits; }
  /// As found by open(): the smallest id that was certainly not given out; 1 if nothing is known.
  [[nodiscard]] JobId next_id() const;

  /// From now on a run is in progress. On disk when this returns.
  [[nodiscard]] Result<void> begin(JobId next_id, std::uint64_t commits);
  /// Called before a commit that gives out ids below next_id.
  /// Errors: Exhausted if the disk is full: the ids must not be given out.
  [[nodiscard]] Result<void> give_out(JobId next_id);
  /// The database holds so many batches. Unsynced: one that is not noted is one that is not missed.
  [[nodiscard]] Result<void> committed(std::uint64_t commits);
  /// The run ended in order and the database is closed. On disk when this returns.
  [[nodiscard]] Result<void> end(const std::string& digest);

 private:
  struct Line {
    std::uint64_t next_id = 1;
    std::uint64_t reserved = 1;
    std::uint64_t commits = 0;
    bool in_order = false;  ///< for people who read the file
    std::string digest;
    std::string boot_id;  ///< never empty in one that was written
  };
  enum class Sync { No, Yes };
  Sidecar(os::Fd fd, std::string path, std::string boot_id);
  [[nodiscard]] Result<Line> read() const;
  Result<void> write(const Line& line, Sync sync);

  os::Fd fd_;
  std::string path_;
  std::string boot_id_;
  Line found_;
  Line now_;
};

}  // namespace gflow::store
