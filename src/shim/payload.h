// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/exit_record.h"
#include "attempt/order.h"
#include "shim/fd.h"
#include "shim/io.h"
#include "shim/recruit.h"

namespace gflow::shim {

/// What a child that could not become the job says before it ends: written to a pipe as it is.
struct LaunchFailure {
  attempt::Step step = attempt::Step::None;
  std::int32_t error = 0;
  /// What it was about, if the order does not say: the interpreter of a script. Ends with a NUL.
  /// The child found it as the job's user; the shim must not look again, as it may be root.
  std::array<char, 256> about{};
};

/// The job's first process. Once `exec_result` is at its end without a word it has become the job,
/// or has ended on the way there: /proc tells which (ProcessFacts::never_executed).
struct Payload {
  pid_t pid = -1;
  Fd exec_result;  ///< carries one LaunchFailure if it cannot
};

/// The job's log, opened once, before anything of the job runs: it belongs to the job's user then,
/// and is not opened again.
struct JobLog {
  Fd file;
  int error = 0;  ///< errno, if there is no file
};
[[nodiscard]] JobLog open_log(const attempt::Order& order);

/// Forks a process that waits to become the first of a job: in the group `unified` of cgroup v2,
/// if that is not "", and it joins the others.
[[nodiscard]] Outcome<Recruit> start_recruit(const std::string& unified,
                                             const std::vector<std::string>& others);

/// A recruit, and what the order calls the control groups it was made to join: in this order.
struct Recruited {
  Recruit process;
  std::vector<std::string> joined;
};

/// Makes the job's first process of the recruit if there is one that still lives, else forks it.
/// All its further steps happen in the child, the last of them before execve(2) that it notes its
/// pid behind the exit record (attempt::kStartedSize).
[[nodiscard]] Outcome<Payload> start_payload(const attempt::Order& order,
                                             JobLog& log,
                                             const Fd& record,
                                             const std::optional<Recruited>& recruited);

/// The sentence for a failure: names the directory, program or file it was about. Opens nothing.
[[nodiscard]] std::string failure_text(const attempt::Order& order, const LaunchFailure& failure);

/// Adds one line "gflow: <text>" to the job's log, where its user looks first.
void add_to_log(const JobLog& log, const std::string& text);

}  // namespace gflow::shim
