// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/index.h"

/// Inside of the engine: who lends an idle GPU, and to whom. Not for other modules.
namespace gflow::engine {

/// Whether what it wants to be known for lending is known of an active job: when it wants it back.
[[nodiscard]] bool watches(const Job& job);

/// Whether its GPU is another's, or is to be, while it leaves it idle.
[[nodiscard]] bool is_lending(const Job& job);

/// Whether it lends its GPU if one that may borrow it asks now.
[[nodiscard]] bool may_lend(Index& index, const Job& job);

}  // namespace gflow::engine
