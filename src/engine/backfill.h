// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/index.h"

/// Inside of the engine: keeping the place of the first job that does not fit (EASY backfill,
/// Lifka, "The ANL/IBM SP Scheduling System", 1995). Not for other modules.
namespace gflow::engine {

/// Why a job may start before the blocked one, if it may.
enum class Passage {
  Blocked,
  InTime,     ///< it is over before the head can start at the earliest
  FromSpare,  ///< what it takes is not needed by the head
  Unproven,   ///< no start of the head can be proven, and its patience is not used up
};

/// The place of the blocked job at the head of the queue, during one pass.
struct Reservation {
  Index::Head head;
  Amounts needs;    ///< of the head
  Amounts missing;  ///< what of it is not free now; 0 for what is
  Amounts spare;    ///< what others may take without the head ever noticing

  /// Whether a job of this shape, which fits now, may start before the head. Assumes that a job
  /// with a time limit ends by limit and grace, and nothing of one without.
  [[nodiscard]] Passage passage(const Index& index, const Shape& shape) const;
  void take_spare(const Amounts& taken);
};

/// Keeps the place of this job, which does not fit now.
[[nodiscard]] Reservation reserve(const Index& index, JobId head);

}  // namespace gflow::engine
