// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace gflow::placement {

/// A multigraph of at most 16 vertices: how many links there are between any two of them.
struct LinkGraph {
  static constexpr int kMax = 16;
  int size = 0;
  std::array<std::array<std::uint8_t, kMax>, kMax> links{};
};

struct RingCounts {
  std::vector<int> rings;  ///< of each set
  std::int64_t steps = 0;  ///< of search, that were taken
};

/// How many Hamiltonian cycles of each set of vertices (a mask: bit i is vertex i) together use no
/// link twice. `sets` are of three and more vertices, ascending; of a set whose parts are not among
/// them less is found.
///
/// A count is of rings that were found: there are as many, at least. What a set has is grown from
/// the rings of its parts with a vertex less, then from what they leave, then searched for from an
/// upper bound (degrees, smallest cut) downward. All of this takes at most `steps` steps of search,
/// shared out over the sets, besides work that grows with sets times rings: with steps enough the
/// counts are the largest there are.
[[nodiscard]] RingCounts count_link_rings(const LinkGraph& graph,
                                          std::span<const std::uint32_t> sets,
                                          std::int64_t steps);

}  // namespace gflow::placement
