// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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

/// How near each other the jobs of a gang go.
struct Nearness {
  /// Labels of nodes, the widest first: those with the same values of the first ones are one domain
  /// of the level of the last of these. Empty: any node is as near as any other.
  std::vector<std::string> levels;
  std::size_t required = 0;   ///< all are in one domain of the first so many levels; 0: anywhere
  std::size_t preferred = 0;  ///< the same where there is room, else of fewer; 0: unsaid

  /// Nobody said. They go near each other where that leaves as many nodes idle.
  [[nodiscard]] bool is_any() const { return required == 0 && preferred == 0; }
  friend bool operator==(const Nearness&, const Nearness&) = default;
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
  std::string level{};  ///< in one domain of which all have to be, `room` is its room; "" is none
};

}  // namespace gflow::engine
