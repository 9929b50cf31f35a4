// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "core/job.h"
#include "engine/gang.h"
#include "engine/order.h"
#include "engine/run_set.h"
#include "placement/ledger.h"

/// Inside of the engine: how jobs stand in the queue. Not for other modules.
namespace gflow::engine {

/// Place in the queue: smaller is earlier. Priority first, then a rank, then age (id). The rank is
/// when the job became ready where jobs of a kind or a group are compared, and what the order makes
/// of it (order.h) where kinds are.
struct QueueKey {
  int priority = kDefaultPriority;
  std::int64_t rank = 0;
  JobId id;

  friend bool operator==(const QueueKey&, const QueueKey&) = default;
  friend bool operator<(const QueueKey& a, const QueueKey& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    return a.rank != b.rank ? a.rank < b.rank : a.id < b.id;
  }
};

/// All a decision looks at besides the place in the queue: if one job of a shape cannot start in a
/// pass, none behind it of the same shape can.
struct Shape {
  placement::DemandIndex demand = 0;
  std::chrono::seconds bound{0};  ///< time limit and grace; 0 is no limit
  GangNumber gang = kNoGang;

  friend auto operator<=>(const Shape&, const Shape&) = default;
};

/// What besides its shape tells a waiting job from others. Jobs alike in all of it are of one kind:
/// first in, first out.
struct Kind {
  int priority = kDefaultPriority;
  std::uint32_t uid = 0;
  bool stoppable = false;  ///< may be stopped to make room, and goes on later
  int step = 0;            ///< of service such a job had
  std::optional<std::chrono::seconds> limit;
  std::string program;

  friend auto operator<=>(const Kind&, const Kind&) = default;
};
/// The waiting jobs of a kind, and how far what is known of it moves them back.
struct Line {
  RunSet<QueueKey> jobs;  ///< by when they became ready
  Contender contender;    ///< of any of them; its `ready` and `served` mean nothing
  std::chrono::seconds allowance{0};
  std::chrono::seconds run_time{0};  ///< expected
  std::uint64_t knowledge = 0;       ///< Index::knowledge when both were asked for
  std::uint32_t front = 0;           ///< its place in Fronts

  friend bool operator==(const Line& a, const Line& b) { return a.jobs == b.jobs; }
};

}  // namespace gflow::engine
