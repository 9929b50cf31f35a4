// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "os/file.h"

namespace gflow::os {

void Fd::reset(int fd) {
  if (fd_ >= 0)
    (void)::close(fd_);  // nothing can be done about a failing close of a file not written
  fd_ = fd;
}

Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

namespace {

/// The kernel gives the lowest number that is free: so many at the end are, unless nearly all that
/// may be were in use at one time.
bool are_last_free(std::size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur < count) return false;
  std::vector<pollfd> last(count);
  for (std::size_t i = 0; i < count; ++i) last[i].fd = static_cast<int>(limit.rlim_cur - 1 - i);
  (void)::poll(last.data(), count, 0);
  return std::ranges::all_of(last, [](const pollfd& one) { return one.revents == POLLNVAL; });
}

}  // namespace

bool is_out_of_files(const Error& error) {
  return error.number == EMFILE || error.number == ENFILE;
}

Result<void> check_descriptors(std::size_t count) {
  if (are_last_free(count)) return {};
  std::vector<Fd> made;
  for (made.reserve(count); made.size() < count;) {
    made.push_back(made.empty() ? Fd(::eventfd(0, EFD_CLOEXEC)) : duplicate(made.front().get()));
    if (!made.back().valid()) return errno_error("make a descriptor");
  }
  return {};
}

}  // namespace gflow::os
