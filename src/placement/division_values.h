// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "placement/division.h"

namespace gflow::placement {

/// Numbers for all divisions of a machine of at most 8 GPUs.
class DivisionIndex {
 public:
  explicit DivisionIndex(int gpus);

  [[nodiscard]] std::size_t size() const { return codes_.size(); }
  /// The blocks of a division, a byte each, from large to small.
  [[nodiscard]] std::uint64_t code(std::uint32_t division) const { return codes_[division]; }
  /// REQUIRES: the code of a division.
  [[nodiscard]] std::uint32_t find(std::uint64_t code) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  [[nodiscard]] std::size_t slot_of(std::uint64_t code) const;

  std::vector<std::uint64_t> codes_;
  std::vector<std::uint32_t> slots_;  // open addressing
};

/// What each division of a small machine is worth in the long run, relative to the idle machine.
///
/// The model: there is always a job waiting, its size drawn by chance; it starts as soon as enough
/// GPUs are free, on the set that is best in the long run; until then one of the running jobs ends,
/// each as likely as the others, and its GPUs come free together. The values are those of this
/// Markov decision process (relative value iteration). A machine of 8 GPUs can be divided in 21,147
/// ways; an arrangement that keeps good sets together is worth more than the next job alone shows.
class DivisionValues {
 public:
  static constexpr int kMaxGpus = 8;

  /// REQUIRES: at most kMaxGpus GPUs.
  explicit DivisionValues(const Prospects& prospects);

  [[nodiscard]] double of(const Division& division) const;
  [[nodiscard]] std::size_t size() const { return index_.size(); }

 private:
  DivisionIndex index_;
  std::vector<double> values_;
};

}  // namespace gflow::placement
