// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

/// Jobs that start together or not at all.
namespace gflow::engine {

/// Those of a gang have the same; 0 is none.
using GangNumber = std::uint32_t;
constexpr GangNumber kNoGang = 0;

/// When the waiting jobs of a gang may start.
enum class GangStart {
  Alone,     ///< each as soon as there is room for it
  Together,  ///< so many at once that enough of the gang are active
  NotYet,    ///< when more of them are there
};

/// How a gang stands.
struct GangView {
  GangStart start = GangStart::NotYet;
  std::size_t least = 0;    ///< so many have to be active
  std::size_t active = 0;   ///< so many are
  std::size_t waiting = 0;  ///< in the queue
  /// For so many of them, when it was last looked for and not enough; empty: it was not, or much
  /// too little is free.
  std::optional<std::size_t> room{};
};

}  // namespace gflow::engine
