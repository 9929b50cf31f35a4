// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/queue.h"
#include "cli/queue/fold.h"
#include "cli/queue/listing.h"
#include "cli/queue/screen.h"
#include "cli/queue/starts.h"
#include "command/table.h"

namespace gflow::cli {

/// Makes the rows of a screen, and knows which columns they need: of the jobs it has looked at,
/// which may come piece by piece. Holds on to what it is made of.
class ScreenRows {
 public:
  ScreenRows(const Listing& listing, const Viewer& viewer) : listing_(listing), viewer_(viewer) {}

  /// When those should start that wait.
  void know(const api::QueueView& queue);
  void look_at(const std::vector<api::JobView>& jobs);
  /// Whose they are is told, though those of one user alone were seen yet.
  void show_users() { shows_users_ = true; }

  [[nodiscard]] std::vector<Column> columns() const;
  /// `prefix` stands before the id: what it hangs under in a tree.
  [[nodiscard]] Row row(const FoldedJobs& folded, const std::string& prefix = "") const;
  /// Jobs that stand elsewhere in the tree.
  [[nodiscard]] Row reference(const FoldedJobs& jobs, const std::string& prefix) const;

 private:
  [[nodiscard]] Row chosen_row(const api::JobView& job, const std::string& prefix) const;
  [[nodiscard]] std::string start_text(const api::JobView& job) const;

  const Listing& listing_;
  const Viewer& viewer_;
  Starts starts_;
  std::string first_user_;
  std::size_t widest_id_ = 5;
  bool shows_users_ = false;
};

}  // namespace gflow::cli
