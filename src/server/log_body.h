// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "os/fd.h"
#include "server/body.h"
#include "server/log_reader.h"

namespace gflow::server {

/// Whose file is where.
struct LogFile {
  std::string path;
  std::uint32_t owner = 0;           ///< uid of the job's user
  std::shared_ptr<void> place = {};  ///< among those that may be open at once
};
/// Opens it to read, without waiting and without following a link. Errors: NotFound; Permission for
/// what is not a file of the owner's: it is opened as whoever gflowd runs as.
[[nodiscard]] Result<os::Fd> open_log(const LogFile& file);
[[nodiscard]] Result<std::uint64_t> size_of(const os::Fd& file);

/// Which bytes of a log are sent.
struct LogPart {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> size = {};        ///< empty: to the end
  std::optional<std::uint64_t> last_lines = {};  ///< in place of `first`
  /// On and on, until ended() was called, and all there is by then.
  bool follow = false;
};

/// The bytes of a job's log, a piece at a time, read on the reader's thread.
class LogBody : public Body {
 public:
  /// `file` may be invalid for one that is followed: it is opened once it is there.
  LogBody(std::shared_ptr<LogReader> reader, LogFile where, os::Fd file, LogPart part);
  ~LogBody() override;
  void next(Then then) override;

  /// The job changed: it may have a log now.
  void changed();
  /// Nothing is written to it any more.
  void ended();
  /// Kept as long as this: what calls the two above.
  void keep(std::shared_ptr<void> watch) { watch_ = std::move(watch); }

 private:
  struct State;
  std::shared_ptr<LogReader> reader_;
  std::shared_ptr<State> state_;  // shared with what runs on the reader's thread
  std::shared_ptr<void> watch_;
};

}  // namespace gflow::server
