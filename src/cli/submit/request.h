// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "api/placement_view.h"
#include "api/types.h"
#include "base/zone.h"
#include "cli/job/job_text.h"
#include "cli/selection.h"
#include "cli/submit/environment.h"
#include "cli/submit/source.h"
#include "cli/submit/sweep.h"
#include "command/command.h"
#include "core/gpu_request.h"

namespace gflow::cli {

/// Where and when a submission is made.
struct Here {
  std::string directory;  ///< absolute
  WallTime now;
  Zone zone;
  Newest newest;
  GpuResources resources = {};  ///< vendors a request may name
};

/// What the options say of one job. Errors: Usage.
[[nodiscard]] Result<JobSpec> read_spec(const Invocation& invocation, const Here& here);

/// One job per task or point: all of them in one submission.
struct Sweep {
  std::vector<std::uint64_t> tasks;  ///< --array; empty if there is none
  std::vector<Point> points;         ///< --param and --param-file; one empty point for none
  std::string name_template;
};
/// `group` names the jobs as belonging together if there are several. All are like the first.
[[nodiscard]] std::vector<api::SubmitRequest::Item> expand(const JobSpec& spec,
                                                           const Payload& payload,
                                                           const Sweep& sweep,
                                                           const std::string& group);
/// The same submission in several, of as many items at most, each with a key of its own.
[[nodiscard]] std::vector<api::SubmitRequest> in_parts(const api::SubmitRequest& request,
                                                       std::size_t most);
/// The same jobs, a task of an array an item of its own: for where ids are not one behind the
/// other. Errors: Usage, of more than a cluster takes.
[[nodiscard]] Result<std::vector<api::SubmitRequest::Item>> tasks_apart(
    const std::vector<api::SubmitRequest::Item>& items);

enum class Terms { Left, Shown };
/// What a dry run is asked of.
struct DryRun {
  std::size_t jobs = 1;
  Terms terms = Terms::Left;  ///< shown: all nodes and every term of their scores
  std::size_t columns = 0;    ///< of the terminal, for sentences to be broken; 0: they are not
};
/// Whether it keeps a job waiting whatever is free.
[[nodiscard]] bool is_gate(const api::BlockerView& blocker);
/// The gates of a dry run in words: a line each; "" if there are none.
[[nodiscard]] std::string gates_text(const api::PlacementView& view, const Clocks& clocks);
/// Where it would run now, with the reason for its GPUs in words and how many stay free there by
/// `machine`, then what it could have instead, marked so: the best three in all. Of several jobs
/// how many would start now, and where each. Where there is no room, what it lacks, who has that
/// and until when.
[[nodiscard]] std::string placement_text(const api::PlacementView& view,
                                         const api::MachineView& machine,
                                         const DryRun& asked,
                                         const Clocks& clocks);

/// "Would submit 2 batch jobs:" and a line for each, of a sweep for the first twenty; the tasks of
/// an array, which are alike, have one. On a screen of so many columns a line that is longer is
/// two.
[[nodiscard]] std::string dry_run_text(const api::SubmitRequest& request, std::size_t columns = 0);

}  // namespace gflow::cli
