// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "os/fd.h"

namespace gflow::os {

/// Waits until a file grows (inotify), or until another thread has something to say.
class FileWatch {
 public:
  /// Errors: NotFound if the file is not there.
  [[nodiscard]] static Result<FileWatch> open(const std::string& path);

  /// Returns at the next change of the file since the last call, or once interrupt() was called.
  [[nodiscard]] Result<void> wait();
  /// Makes this and every later wait() return at once. May be called from any thread.
  void interrupt() const;

 private:
  FileWatch(Fd notify, Fd wake) : notify_(std::move(notify)), wake_(std::move(wake)) {}
  Fd notify_;
  Fd wake_;
};

}  // namespace gflow::os
