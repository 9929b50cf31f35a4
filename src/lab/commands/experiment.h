// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "command/command.h"
#include "command/context.h"
#include "lab/report.h"

/// What the experiments of `gflow lab` have in common on the command line.
namespace gflow::cli {

/// --csv and --plot.
[[nodiscard]] std::vector<Option> output_options();
/// --data.
[[nodiscard]] Option data_option();
/// Where data sets are: --data, else GFLOW_LAB_DATA, else "".
[[nodiscard]] std::string data_directory(const Invocation& invocation);

/// --days: the days of a trace that are played, from the end of day `first` to that of day `last`.
[[nodiscard]] Option days_option();
struct Days {
  int first = 0;
  int last = 0;
};
/// Errors: Usage.
[[nodiscard]] Result<Days> read_days(const std::string& text);

/// Draws into this file and says so. Errors: Usage if it is not called "*.svg".
[[nodiscard]] Result<void> draw(const std::vector<lab::Chart>& charts,
                                const std::string& option,
                                const std::string& file,
                                Context& context);
/// Prints the report as was asked for and writes the picture.
[[nodiscard]] Result<int> give(const lab::Report& report,
                               const Invocation& invocation,
                               Context& context);

/// Shows how far the work is, on a terminal; wiped out by wipe().
class ProgressLine {
 public:
  explicit ProgressLine(Context& context) : context_(context) {}
  ~ProgressLine() { wipe(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Borrows this object.
  [[nodiscard]] lab::Progress callback();
  void wipe();

 private:
  Context& context_;
  std::string shown_;
};

[[nodiscard]] Command lab_openb_command();
[[nodiscard]] Command lab_churn_command();
[[nodiscard]] Command lab_topology_command();
[[nodiscard]] Command lab_queue_command();
[[nodiscard]] Command lab_replay_command();

}  // namespace gflow::cli
