// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "api/expected_start.h"
#include "api/queue.h"
#include "cli/queue/fields.h"

namespace gflow::cli {

/// When jobs that wait should start: as the scheduler expects it, or the time they may begin at.
class Starts {
 public:
  void know(const api::QueueView& queue);
  void look_at(const api::JobView& job, WallTime now);

  /// Empty where nothing is known.
  [[nodiscard]] std::optional<api::ExpectedStart> of(JobId job) const;

 private:
  std::map<JobId, api::ExpectedStart> starts_;
};

/// The columns that only `gqueue --start` has, which tell what `starts` knows when they are shown.
/// It has to outlive them.
[[nodiscard]] std::vector<Field> start_fields(const Starts& starts);

constexpr std::string_view kDefaultStartFields =
    "JOBID,NAME,USER,ST,NODES,START,START_BY,NODELIST(REASON)";

/// Puts jobs in the order in which they should start: those of which nothing is known come last. At
/// the same time they stand as they do in the queue, then by priority and id.
[[nodiscard]] std::vector<api::JobView> in_order_of_start(std::vector<api::JobView> jobs,
                                                          const Starts& starts,
                                                          const api::QueueView& queue);

}  // namespace gflow::cli
