// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "api/explanation.h"
#include "base/zone.h"
#include "command/terminal.h"

namespace gflow::cli {

/// Everything about a job, a fact per line, with when it should start. `daemon` adds what is
/// enforced on it. On a screen of so many columns what is longer is broken, but for what is to be
/// copied: command, directory, log.
[[nodiscard]] std::string job_text(const api::Explanation& explained,
                                   const std::optional<api::DaemonView>& daemon,
                                   const std::function<std::string(WallTime)>& time_text,
                                   const Painter& paint,
                                   std::size_t columns = 0);

/// "exited with code 1 after 3m20s", "killed by signal 9 (SIGKILL) after 2h".
[[nodiscard]] std::string ended_text(const api::JobView& job);

/// What the reader of a job's view needs to tell times.
struct Clocks {
  WallTime now;
  Zone zone;
};
/// What jobs are called where numbers say nothing to people: pods, "default/train".
using JobNames = std::map<JobId, std::string>;
/// "Need 2 A100 GPUs, only 1 available", where its own text does not say so; "" of what lacks no
/// GPUs.
[[nodiscard]] std::string shortage_text(const api::BlockerView& blocker);
/// "\nBlocked by:" and every blocker with its numbers, who holds what is missing and until when.
[[nodiscard]] std::string blocked_by_text(const std::vector<api::BlockerView>& blockers,
                                          const Clocks& clocks,
                                          const JobNames& names = {});
/// "\nExpected start: 18:10 (in 4h5m)", and what that is known by; "" where it is not known.
[[nodiscard]] std::string expected_start_text(const std::optional<api::ExpectedStart>& start,
                                              const Clocks& clocks);
/// Why it waits: every blocker with its numbers, who holds what is missing and until when, and what
/// would start it sooner. For a job that does not wait, what it does instead.
[[nodiscard]] std::string why_text(const api::Explanation& explanation,
                                   const Clocks& clocks,
                                   const JobNames& names = {});

}  // namespace gflow::cli
