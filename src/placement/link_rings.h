// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace gflow::placement {

/// A multigraph of at most 16 vertices: how many links there are between any two of them.
struct LinkGraph {
  static constexpr int kMax = 16;
  int size = 0;
  std::array<std::array<std::uint8_t, kMax>, kMax> links{};
};

/// The largest number of Hamiltonian cycles that together use no link twice, for 3 and more
/// vertices: found by search from an upper bound (degrees, smallest cut) downward. A search that
/// takes more than `steps` counts as a failure to find that many.
[[nodiscard]] int count_link_rings(const LinkGraph& graph, int steps);

}  // namespace gflow::placement
