// SPDX-License-Identifier: Apache-2.0
#include "attempt/failure.h"

#include <cerrno>

namespace gflow::attempt {
namespace {

/// Errors of a machine or a file server in trouble, not of what was asked for: they pass. Of which
/// of them say nothing of the job at all, see is_of_any_job() in core/failure.cpp.
bool is_of_resources(int error) {
  switch (error) {
    case EAGAIN:
    case EINTR:
    case EIO:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case ESTALE:
    case ETIMEDOUT:
    case ETXTBSY:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOTCONN:
    case EREMOTEIO:
      return true;
    default:
      return false;
  }
}

}  // namespace

Fault fault_of(Step step, int error) {
  switch (step) {
    case Step::None:
    case Step::Fork:
    case Step::TakeMark:
    case Step::JoinCgroup:
    case Step::OpenStdin:
    case Step::KeepFromGpus:
      return Fault::Node;
    case Step::OpenLog:
      // What stands in the place of this job's log alone; a lease or a quota of its user.
      if (error == ELOOP || error == EISDIR || error == ENXIO || error == EINVAL) return Fault::Job;
      return error == EAGAIN || error == EDQUOT ? Fault::Passing : Fault::Node;
    case Step::JoinKeyring:
      return error == EDQUOT ? Fault::Passing : Fault::Node;  // keys are counted by user
    case Step::StartInTime:
      return Fault::Passing;
    case Step::ReachProgram:
      // Somebody killed it, maybe its user; one that gave up by itself says that all will.
      return error == EINTR ? Fault::Passing : Fault::Node;
    case Step::BecomeUser:
    case Step::ChangeDirectory:
    case Step::ReadScript:
    case Step::RunInterpreter:
    case Step::RunProgram:
      break;
  }
  if (error == ENFILE) return Fault::Node;  // the table of the whole machine
  return is_of_resources(error) ? Fault::Passing : Fault::Job;
}

}  // namespace gflow::attempt
