// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <unistd.h>

namespace gflow::os {

void Fd::reset(int fd) {
  if (fd_ >= 0) (void)::close(fd_);  // nothing can be done about a failing close of a file not written
  fd_ = fd;
}

}  // namespace gflow::os
