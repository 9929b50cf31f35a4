// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: the lines of a queue in their order, during one pass. Not for other
/// modules.
namespace gflow::engine {

/// The first job of a line.
struct Candidate {
  QueueKey place;
  const Line* line = nullptr;
  Fronts::ShapeNumber shape = 0;

  [[nodiscard]] JobId job() const { return line->jobs.front().id; }
  /// So that a heap gives the first in the queue.
  friend bool operator<(const Candidate& a, const Candidate& b) { return b.place < a.place; }
};

/// Lines, the first in the queue first, until they or all of their shape are dropped.
class Candidates {
 public:
  explicit Candidates(const Index& index) : index_(index) {}
  /// In any order, before anything else.
  void add(const Front& front) {
    heap_.push_back({index_.place_of(front), front.line, front.shape});
  }
  void put_in_order();

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  /// Of all the first. A place that has moved back since it was asked for is put right before.
  [[nodiscard]] const Candidate& first();
  /// No more of the first one's line in this pass.
  void drop_line();
  /// No more of its shape.
  void drop_shape();
  /// The first one's line has another first job, or a place further back.
  void put_again();
  /// Places may have moved forward.
  void compare_again();
  /// Drops all that `is_needless`.
  template <typename IsNeedless>
  void drop_if(IsNeedless is_needless) {
    std::erase_if(heap_, is_needless);
    put_in_order();
  }

 private:
  void skip_dropped();

  const Index& index_;
  std::vector<Candidate> heap_;
  std::vector<std::uint8_t> dropped_;  ///< by number of the shape
};

}  // namespace gflow::engine
