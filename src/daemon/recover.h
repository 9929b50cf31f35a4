// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "os/paths.h"

namespace gflow::daemon {

/// What a recovery found and did.
struct Recovery {
  std::string database;
  bool needed = true;     ///< false: nothing is wrong with the database, nothing was changed
  std::string base;       ///< the file most of it was read from; "" if none could be read
  bool complete = false;  ///< nothing that was committed is missing in it
  std::vector<std::string> unread;     ///< files that could not be read, each with the reason
  std::size_t jobs = 0;                ///< in the database now
  std::vector<JobId> from_older;       ///< read from another file than `base`
  std::vector<JobId> from_attempts;    ///< rebuilt from the files of their attempt
  std::vector<JobId> without_payload;  ///< what they run could not be read: on hold, or running
  std::vector<JobId> held;   ///< they may have run since the backup: on hold, their owners decide
  std::vector<JobId> ended;  ///< they were running in the backup and are gone: Lost
  std::vector<std::pair<JobId, JobId>> missing;  ///< from, to: given out, and nothing is known
  std::vector<std::string> kept;                 ///< the damaged files
};

/// Rebuilds the database from what can be read of it, the newest backup and the files of attempts,
/// and puts it in the place of the damaged one, which is kept. Takes the lock of the daemon.
/// Errors: WrongState if gflowd runs; Failure if nothing could be written: all is as it was then.
[[nodiscard]] Result<Recovery> recover(const os::Paths& paths, Now now);

[[nodiscard]] std::string recovery_text(const Recovery& recovery);
[[nodiscard]] std::string recovery_json(const Recovery& recovery);

}  // namespace gflow::daemon
