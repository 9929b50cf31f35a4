// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/time.h"
#include "engine/state.h"
#include "slurm/facts.h"

namespace gflow::slurm {

/// Slurm's jobs and nodes as a State that shows them: its job ids are their numbers. Nothing is
/// decided in it.
struct Picture {
  engine::State state;
  std::map<JobId, std::string> told;     ///< Slurm's reason of why it waits, explained
  std::map<JobId, std::string> outputs;  ///< the files of what they write
};
[[nodiscard]] Picture picture_of(const Facts& facts, Now now, std::uint64_t revision);

/// "Resources: it waits for GPUs, CPUs or memory that others have".
[[nodiscard]] std::string explained(const std::string& reason);

}  // namespace gflow::slurm
