// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "core/machine.h"
#include "engine/state.h"
#include "placement/ledger.h"

/// Inside of the engine: what a machine and the readings of its devices mean to the ledger.
namespace gflow::engine {

/// What a job that is active declared of a device's memory; empty for one that is not active any
/// more.
using Declared = std::function<std::optional<Memory>(const JobUse&, const Device&)>;

/// The memory guard. Of each device's memory the following cannot be given out: what processes use
/// that are not gflow's, what jobs use beyond their declaration, and what the readings do not
/// explain (driver, processes that are not listed). What jobs declared and do not use yet is theirs
/// in the ledger.
[[nodiscard]] placement::Node node_of(const NodeRecord& record,
                                      const std::vector<Drain>& drains,
                                      const Policy& policy,
                                      const Declared& declared);

/// Memory of a device that cannot be given out, by the rule above.
struct MemoryLost {
  Memory all{};
  Memory kept{};  ///< of it, what an idle device uses, too: shares are of the rest

  friend bool operator==(const MemoryLost&, const MemoryLost&) = default;
};
[[nodiscard]] MemoryLost memory_lost(const Device& device, const Declared& declared);

}  // namespace gflow::engine
