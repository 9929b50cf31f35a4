// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "attempt/exit_record.h"
#include "attempt/order.h"
#include "shim/fd.h"
#include "shim/io.h"

namespace gflow::shim {

/// What a child that could not become the job says before it ends.
struct LaunchFailure {
  attempt::Step step = attempt::Step::None;
  std::int32_t error = 0;
};

/// The job's first process. It has become the job once `exec_result` is at its end without a word.
struct Payload {
  pid_t pid = -1;
  Fd exec_result;  ///< carries one LaunchFailure if it cannot
};

/// Forks the job's first process. All its further steps happen in the child.
[[nodiscard]] Outcome<Payload> start_payload(const attempt::Order& order);

/// The sentence for a failure: names the directory, program or file it was about.
[[nodiscard]] std::string failure_text(const attempt::Order& order, const LaunchFailure& failure);

/// Adds one line "gflow: <text>" to the job's log, where its user looks first.
void add_to_log(const attempt::Order& order, const std::string& text);

}  // namespace gflow::shim
