// SPDX-License-Identifier: Apache-2.0
#include "core/failure.h"

#include <cerrno>

namespace gflow {

bool is_of_any_job(const Failure& failure) {
  if (failure.kind != FailureKind::Node && failure.kind != FailureKind::Passing) return false;
  // Of attempt::fault_of(), the errors that every job of the machine meets. Left out on purpose, as
  // they may be of one job alone: a quota of its user (EDQUOT), a file server only it works on
  // (ESTALE, ETIMEDOUT, EHOSTDOWN, EHOSTUNREACH, ENOTCONN, EREMOTEIO), a program of it that is
  // being written (ETXTBSY). EROFS is of the disk gflow keeps its own files on.
  switch (failure.error) {
    case EAGAIN:
    case EINTR:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EROFS:
      return true;
    default:
      return false;
  }
}

}  // namespace gflow
