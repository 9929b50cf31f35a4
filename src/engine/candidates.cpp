// SPDX-License-Identifier: Apache-2.0
#include "engine/candidates.h"

#include <algorithm>

namespace gflow::engine {

void Candidates::put_in_order() {
  std::make_heap(heap_.begin(), heap_.end());
  skip_dropped();
}

const Candidate& Candidates::first() {
  while (true) {
    const Candidate& best = heap_.front();
    if (!(best.place < index_.place_of(index_.fronts.of(*best.line)))) return best;
    put_again();
  }
}

void Candidates::drop_line() {
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  skip_dropped();
}

void Candidates::drop_shape() {
  const Fronts::ShapeNumber shape = heap_.front().shape;
  if (dropped_.size() <= shape) dropped_.resize(shape + std::size_t{1}, 0);
  dropped_[shape] = 1;
  skip_dropped();
}

void Candidates::put_again() {
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.back().place = index_.place_of(index_.fronts.of(*heap_.back().line));
  std::push_heap(heap_.begin(), heap_.end());
  skip_dropped();
}

void Candidates::compare_again() {
  for (Candidate& one : heap_) one.place = index_.place_of(index_.fronts.of(*one.line));
  put_in_order();
}

void Candidates::skip_dropped() {
  const auto is_dropped = [this](const Candidate& one) {
    return one.shape < dropped_.size() && dropped_[one.shape] != 0;
  };
  while (!heap_.empty() && is_dropped(heap_.front())) {
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
  }
}

}  // namespace gflow::engine
