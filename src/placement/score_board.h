// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "placement/policy.h"

namespace gflow::placement {

/// Scores of many nodes for one kind of demand, and the best of them without looking at all: nodes
/// are in blocks that know their highest score.
class ScoreBoard {
 public:
  /// New nodes have kNoScore.
  void resize(std::size_t nodes);
  [[nodiscard]] std::size_t size() const { return scores_.size(); }

  [[nodiscard]] Score at(NodeIndex node) const { return scores_[static_cast<std::size_t>(node)]; }
  void set(NodeIndex node, Score score);

  /// The first node of the highest score; nothing if all have kNoScore.
  [[nodiscard]] std::optional<NodeIndex> best();
  /// The nodes of the highest score; the n-th of them, counted round.
  [[nodiscard]] std::optional<NodeIndex> best(std::uint64_t n);

 private:
  static constexpr std::size_t kBlock = 64;

  [[nodiscard]] Score highest();

  std::vector<Score> scores_;           // padded to whole blocks
  std::vector<Score> highest_;          // by block
  std::vector<std::uint8_t> is_stale_;  // by block: highest_ may be too high
  std::vector<std::uint32_t> stale_;    // those blocks
};

}  // namespace gflow::placement
