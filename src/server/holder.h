// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/job.h"

namespace gflow::server {

/// A process, whoever has its pid later.
struct ProcessId {
  int pid = 0;
  std::uint64_t start_time = 0;  ///< ProcessFacts::start_time

  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

/// What an allocation is bound to besides time.
struct HeldFor {
  std::optional<ProcessId> owner;   ///< it ends with this process
  std::optional<ProcessId> waiter;  ///< it leaves the queue with this one
};

/// What is run in place of a program, with the path of gflow-shim: see shim/hold.h.
[[nodiscard]] std::vector<std::string> holder_command(std::string shim, const HeldFor& held_for);
/// Whether that is what it is, of gflow wherever it was installed then.
[[nodiscard]] bool is_holder_command(const std::vector<std::string>& argv);
/// The processes with any of which such an allocation ends while it waits.
[[nodiscard]] std::vector<ProcessId> waiting_processes(const Payload& payload);

}  // namespace gflow::server
