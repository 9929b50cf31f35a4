// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/queue/counts.h"
#include "cli/queue/fold.h"
#include "cli/queue/screen_rows.h"
#include "command/table.h"

namespace gflow::cli {

/// The rows of queue_screen() piece by piece, of jobs that come in its order: it keeps rows that
/// jobs to come may join, and counts. Holds on to listing and viewer.
class ScreenStream {
 public:
  ScreenStream(const Listing& listing, const Viewer& viewer, const Painter& paint);

  void know(const api::QueueView& queue) { rows_.know(queue); }
  /// The rows that are complete.
  [[nodiscard]] std::string add(std::vector<api::JobView> jobs);
  /// The others, and the line of counts.
  [[nodiscard]] std::string end();

  [[nodiscard]] const JobCounts& counts() const { return counts_; }
  /// The first of them that waits.
  [[nodiscard]] std::optional<JobId> first_waiting() const { return first_waiting_; }

 private:
  [[nodiscard]] std::string text_of(const std::vector<FoldedJobs>& jobs);

  const Listing& listing_;
  const Viewer& viewer_;
  ScreenRows rows_;
  ArrayFolder folder_;
  ScreenTable table_;
  JobCounts counts_;
  std::optional<JobId> first_waiting_;
};

}  // namespace gflow::cli
