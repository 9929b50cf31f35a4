// SPDX-License-Identifier: Apache-2.0
#include "os/file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>

#include "os/file.h"

namespace gflow::os {

Result<FileWatch> FileWatch::open(const std::string& path) {
  Fd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!notify.valid()) return errno_error("inotify_init1");
  if (::inotify_add_watch(notify.get(), path.c_str(), IN_MODIFY | IN_CLOSE_WRITE) < 0) {
    return errno_error("watch", path);
  }
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("eventfd");
  return FileWatch(std::move(notify), std::move(wake));
}

Result<void> FileWatch::wait() {
  std::array<pollfd, 2> fds = {pollfd{notify_.get(), POLLIN, 0}, pollfd{wake_.get(), POLLIN, 0}};
  while (::poll(fds.data(), fds.size(), -1) < 0) {
    if (errno != EINTR) return errno_error("poll");
  }
  alignas(inotify_event) std::array<char, 4096> events;
  while (::read(notify_.get(), events.data(), events.size()) > 0) {
    // Which events does not matter: the caller reads on from where it was.
  }
  return {};
}

void FileWatch::interrupt() const {
  const std::uint64_t one = 1;
  // Never read back: once interrupted, always interrupted. A full counter is interrupted already.
  (void)!::write(wake_.get(), &one, sizeof one);
}

}  // namespace gflow::os
