// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: who has what others wait for. Not for other modules.
namespace gflow::engine {

constexpr std::size_t kMaxHolders = 64;  ///< told of one reason

/// When it has to be gone, as Index::promised_end() has it.
[[nodiscard]] std::optional<WallTime> end_on_calendar(const Index& index, const Job& job, Now now);

[[nodiscard]] blocker::Holder holder_of(const Index& index,
                                        const Job& job,
                                        std::vector<int> gpus,
                                        Now now);

/// An active job with all that it holds, on whichever nodes that is.
[[nodiscard]] blocker::Holder running(const Index& index, const Job& job, Now now);

/// The jobs that hold something of a kind on a node, told by `holds(job)`.
template <typename Holds>
[[nodiscard]] std::vector<blocker::Holder> holders(const Index& index,
                                                   const std::string& node,
                                                   Now now,
                                                   Holds holds) {
  std::vector<blocker::Holder> found;
  for (const Status status : kActive.list()) {
    for (const JobId id : index.in(status)) {
      const Job& job = *index.find(id);
      if (!holds(job) || found.size() == kMaxHolders) continue;
      for (Allocation& part : allocations_of(*attempt_of(job))) {
        if (part.node == node) found.push_back(holder_of(index, job, std::move(part.gpus), now));
      }
    }
  }
  std::ranges::sort(found, {}, &blocker::Holder::job);
  return found;
}

}  // namespace gflow::engine
