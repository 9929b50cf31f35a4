// SPDX-License-Identifier: Apache-2.0
#include "attempt/failure.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace gflow::attempt {
namespace {

TEST(Failure, IsTheNodesOnlyWhereNoUserCanBringItAbout) {
  const struct {
    Step step;
    int error;
    Fault fault;
  } kTable[] = {
      {Step::Fork, EAGAIN, Fault::Node},
      {Step::JoinCgroup, ENOENT, Fault::Node},
      {Step::OpenStdin, EMFILE, Fault::Node},
      {Step::OpenLog, ENOSPC, Fault::Node},
      {Step::OpenLog, EROFS, Fault::Node},
      {Step::OpenLog, EISDIR, Fault::Job},
      {Step::OpenLog, ELOOP, Fault::Job},
      {Step::OpenLog, EINVAL, Fault::Job},
      {Step::OpenLog, EAGAIN, Fault::Passing},
      {Step::BecomeUser, ENOENT, Fault::Job},
      {Step::BecomeUser, EAGAIN, Fault::Passing},
      {Step::ChangeDirectory, ENOENT, Fault::Job},
      {Step::ChangeDirectory, EACCES, Fault::Job},
      {Step::ChangeDirectory, ESTALE, Fault::Passing},
      {Step::ReadScript, ENOENT, Fault::Job},
      {Step::RunInterpreter, ENOENT, Fault::Job},
      {Step::RunProgram, ENOENT, Fault::Job},
      {Step::RunProgram, E2BIG, Fault::Job},
      {Step::RunProgram, ENOEXEC, Fault::Job},
      {Step::RunProgram, ETXTBSY, Fault::Passing},
      {Step::RunProgram, ENOMEM, Fault::Passing},
      {Step::RunProgram, ENFILE, Fault::Node},
      {Step::StartInTime, ETIMEDOUT, Fault::Passing},
      {Step::ReachProgram, EINTR, Fault::Passing},
      {Step::ReachProgram, 0, Fault::Node},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(fault_of(row.step, row.error), row.fault)
        << step_text(row.step) << ", errno " << row.error;
  }
}

}  // namespace
}  // namespace gflow::attempt
