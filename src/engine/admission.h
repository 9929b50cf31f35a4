// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/event.h"
#include "engine/index.h"

/// Inside of the engine: what is taken, and what is refused. Not for other modules.
namespace gflow::engine {

/// Whether these jobs would be taken now. Errors: why not, as who submits them is told.
[[nodiscard]] Result<void> check_submission(Index& index, const event::Submit& event);
/// Dependencies of one request: each is a row, and all of them are written before anybody else has
/// a turn.
constexpr std::size_t kMostEdgesAtOnce = 100'000;
/// Whether so many dependencies may come to those of a user, as so many go. Errors: Exhausted,
/// Usage for more than one request may have.
[[nodiscard]] Result<void> check_edges(const Index& index,
                                       std::uint32_t uid,
                                       std::size_t more,
                                       std::size_t fewer);

}  // namespace gflow::engine
