// SPDX-License-Identifier: Apache-2.0
#include "core/failure.h"

#include <cerrno>

namespace gflow {

bool is_of_any_job(const Failure& failure) {
  if (failure.kind != FailureKind::Node && failure.kind != FailureKind::Passing) return false;
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
