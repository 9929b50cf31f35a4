// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "command/terminal.h"

/// What a screen of the queue says in few words.
namespace gflow::cli {

/// Where it is, or why it waits or how it ended: "0,1", "4 (0.5)" of one with a part of a GPU,
/// "4 (shared)" of one that takes turns on it, "0 (GPU memory 20G/8G)" of one over its GPU memory,
/// "(Resources 7/8)", "(behind job 4)", "(exit 1)", "-".
[[nodiscard]] std::string brief_where_or_why(const api::JobView& job);
/// The same in fewer words where there are some: "(behind 4)", "(after 1-3)".
[[nodiscard]] std::vector<std::string> briefer_why(const api::JobView& job);

/// GPUs of all its nodes: "2", "0.5", "2x0.5", "8" on two nodes with four each, "1 shared" with
/// those it takes turns with; "-" for none.
[[nodiscard]] std::string brief_gpus(const Request& request);

/// How a state is painted: running green, held or leaving yellow, failed red, ended grey.
[[nodiscard]] Style style_of(Status status);

/// A row of a screen: a job, or the tasks of one array that wait for the same.
struct FoldedJobs {
  std::vector<const api::JobView*> jobs;  ///< by id; never empty

  [[nodiscard]] const api::JobView& first() const { return *jobs.front(); }
  /// "12", "14-31", "14,16-31".
  [[nodiscard]] std::string ids() const;
  /// "eval", "eval_[3-20]"; "group-1a2b (18 jobs)" where names have nothing in common.
  [[nodiscard]] std::string name() const;
};
/// What the tasks of an array that stand together have in common besides their request.
enum class Folding { Waiting, SameDependencies };
/// Jobs of one group that wait with the same request stand together where the first of them stood.
[[nodiscard]] std::vector<FoldedJobs> fold_arrays(const std::vector<const api::JobView*>& jobs,
                                                  Folding folding = Folding::Waiting);
/// Each in a row of its own.
[[nodiscard]] std::vector<FoldedJobs> unfolded(const std::vector<const api::JobView*>& jobs);

}  // namespace gflow::cli
