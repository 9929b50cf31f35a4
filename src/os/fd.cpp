// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <fcntl.h>
#include <unistd.h>

namespace gflow::os {

void Fd::reset(int fd) {
  if (fd_ >= 0)
    (void)::close(fd_);  // nothing can be done about a failing close of a file not written
  fd_ = fd;
}

Fd duplicate(int fd) { return Fd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

}  // namespace gflow::os
