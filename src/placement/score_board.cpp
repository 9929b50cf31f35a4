// SPDX-License-Identifier: Apache-2.0
#include "placement/score_board.h"

#include <algorithm>

namespace gflow::placement {

void ScoreBoard::resize(std::size_t nodes) {
  const std::size_t blocks = (nodes + kBlock - 1) / kBlock;
  scores_.resize(blocks * kBlock, kNoScore);
  highest_.resize(blocks, kNoScore);
  is_stale_.resize(blocks, 0);
}

void ScoreBoard::set(NodeIndex node, Score score) {
  Score& now = scores_[static_cast<std::size_t>(node)];
  if (now == score) return;
  const std::size_t block = static_cast<std::size_t>(node) / kBlock;
  if (score >= highest_[block]) {
    highest_[block] = score;
  } else if (now == highest_[block] && is_stale_[block] == 0) {
    is_stale_[block] = 1;
    stale_.push_back(static_cast<std::uint32_t>(block));
  }
  now = score;
}

Score ScoreBoard::highest() {
  for (const std::uint32_t block : stale_) {
    const Score* first = scores_.data() + block * kBlock;
    Score most = kNoScore;
    for (std::size_t i = 0; i < kBlock; ++i) most = std::max(most, first[i]);
    highest_[block] = most;
    is_stale_[block] = 0;
  }
  stale_.clear();
  Score most = kNoScore;
  for (const Score score : highest_) most = std::max(most, score);
  return most;
}

std::optional<NodeIndex> ScoreBoard::best() {
  const Score most = highest();
  if (most == kNoScore) return std::nullopt;
  const auto block = std::ranges::find(highest_, most) - highest_.begin();
  const auto first = scores_.begin() + block * static_cast<std::ptrdiff_t>(kBlock);
  return static_cast<NodeIndex>(std::find(first, scores_.end(), most) - scores_.begin());
}

std::optional<NodeIndex> ScoreBoard::best(std::uint64_t n) {
  const Score most = highest();
  if (most == kNoScore) return std::nullopt;
  const auto count = static_cast<std::uint64_t>(std::ranges::count(scores_, most));
  std::uint64_t left = count == 0 ? 0 : n % count;
  auto found = std::ranges::find(scores_, most);
  while (left-- > 0) found = std::find(found + 1, scores_.end(), most);
  return static_cast<NodeIndex>(found - scores_.begin());
}

}  // namespace gflow::placement
