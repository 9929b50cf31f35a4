// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "base/result.h"
#include "os/fd.h"
#include "server/fair_queue.h"

namespace gflow::server {

/// A thread that reads files, and waits for those that are followed to grow: by inotify, or, where
/// there may be no more watches, by looking each second. Users take turns.
class LogReader {
 public:
  /// Throws std::system_error where no thread can be had.
  LogReader();
  /// Drops what has not begun, calls nobody any more, and waits for what runs.
  ~LogReader();
  LogReader(const LogReader&) = delete;
  LogReader& operator=(const LogReader&) = delete;

  /// `work` runs on the thread.
  void run(std::uint32_t uid, std::function<void()> work);
  /// A place among the files that may be open at once, as long as it is kept. From any thread.
  /// Errors: Unreachable where there is none left; try again.
  [[nodiscard]] Result<std::shared_ptr<void>> take_place();
  /// Whether files can be waited for: a user may have so many inotify instances. From any thread.
  /// Errors: Unreachable, saying why not; try again.
  [[nodiscard]] Result<void> can_follow();
  /// Calls `then` once, on the thread, when the file is written to after this, or may have been.
  /// Who lets go of what is returned, which may outlive the reader, waits no more, but may be
  /// called just then. Errors: as can_follow().
  [[nodiscard]] Result<std::shared_ptr<void>> on_growth(int file, std::function<void()> then);

 private:
  static constexpr int kUnwatched = -1;  ///< in place of a watch
  /// By watch, which all who follow a file share, and a number of each.
  using Waiters = std::map<int, std::map<std::uint64_t, std::function<void()>>>;
  struct Core {
    std::mutex mutex;
    FairQueue queue;  // guarded by mutex, as all else
    Waiters waiters;
    std::uint64_t next = 0;
    os::Fd notify;  // invalid until somebody follows
    os::Fd wake;
    bool stop = false;
    std::size_t places = 0;  // that are left
  };
  static Result<void> open_notify(Core& core);
  static void serve(Core& core);
  static void work_off(Core& core);
  static void tell_of_growth(Core& core);
  static void tell_unwatched(Core& core);
  static void tell(const Waiters& waiters);
  static void let_go(Core& core, int watch, std::uint64_t number);

  std::shared_ptr<Core> core_ = std::make_shared<Core>();
  std::thread thread_;
};

}  // namespace gflow::server
