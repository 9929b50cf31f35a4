// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "core/machine.h"
#include "store/store.h"

namespace gflow::store {

/// What can be read of a database that may be damaged, old or a backup. Reads a copy of it: the
/// files themselves are never opened by SQLite, which would change them.
class Salvage {
 public:
  /// Copies the database and its WAL into `directory`, which has to be empty, and brings the copy
  /// up to date. Errors: it cannot be read at all. Here and below an error with a number is one of
  /// the machine and not of the file: nothing may be concluded from it.
  [[nodiscard]] static Result<std::unique_ptr<Salvage>> open(const std::string& path,
                                                             const std::string& directory);
  ~Salvage();
  Salvage(const Salvage&) = delete;
  Salvage& operator=(const Salvage&) = delete;

  /// Nothing in it is damaged; some of the newest transactions may be missing all the same.
  [[nodiscard]] bool is_whole() const;
  [[nodiscard]] std::uint64_t commits() const;  ///< transactions it holds
  [[nodiscard]] JobId next_id() const;

  /// Empty if it does not have the job. Errors: it cannot be read.
  [[nodiscard]] Result<std::optional<Job>> job(JobId id);
  /// Errors: it is not there or cannot be read.
  [[nodiscard]] Result<Payload> payload(JobId id);
  /// Those that can be read.
  [[nodiscard]] Result<std::vector<Drain>> drains();
  [[nodiscard]] Result<std::vector<NodeHealth>> unhealthy();
  [[nodiscard]] Result<std::vector<MadeSlice>> slices();
  [[nodiscard]] Result<Lived> lived();

 private:
  struct Core;
  explicit Salvage(std::unique_ptr<Core> core);
  static Result<std::unique_ptr<Salvage>> open_copy(const std::string& path,
                                                    const std::string& directory);
  std::unique_ptr<Core> core_;
};

/// What the line beside a database says, whether or not the database is there.
struct Known {
  JobId next_id{1};           ///< smallest id that was certainly not given out
  std::uint64_t commits = 0;  ///< batches that were certainly committed
  bool is_all = false;        ///< those are all; if not, there may have been more
};
[[nodiscard]] Result<Known> known_of(const std::string& path);

/// Puts the database `fresh`, closed, in the place of the one at `path`, whose files are kept as
/// PATH.damaged-TIME. `known` is what is known to have been given out and committed. On disk when
/// this returns. Returns the paths of the files kept.
[[nodiscard]] Result<std::vector<std::string>> install(const std::string& fresh,
                                                       const std::string& path,
                                                       const Known& known,
                                                       WallTime now);

}  // namespace gflow::store
