// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/index.h"

/// Inside of the engine: who lends an idle GPU, and to whom. Not for other modules.
namespace gflow::engine {

/// Whether it would be known when an active job wants back what it lends.
[[nodiscard]] bool watches(const Job& job);

/// Whether its GPU is another's, or is to be, while it leaves it idle; or it waits to have it back.
[[nodiscard]] bool is_lending(const Job& job);

/// Whether it lends its GPU if one that may borrow it asks now.
[[nodiscard]] bool may_lend(Index& index, const Job& job);

/// Whether one of these devices is lent by who has it.
[[nodiscard]] bool are_lent(const Index& index, const std::vector<placement::Placement>& there);

/// Whether a GPU of an active job was lent to it, and is still: it makes room once that is wanted
/// back. Not any more where who lent it is gone.
[[nodiscard]] bool borrows(Index& index, const Job& job);

}  // namespace gflow::engine
