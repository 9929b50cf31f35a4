// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/translate.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/info/machine_screen.h"
#include "cli/queue/fetch.h"
#include "cli/queue/watch.h"
#include "cli/selection.h"
#include "cli/selection_options.h"
#include "command/context.h"

namespace gflow::cli {

namespace {

/// The GPUs in the upper half of the terminal.
std::string gpus_panel(const ListedJobs& listed, const Viewer& viewer, const Painter& paint) {
  if (!listed.machine) return "";
  const MachineViewer its{viewer.user, viewer.now, viewer.zone, viewer.columns, true};
  return machine_panel(*listed.machine, its, viewer.rows / 2, paint);
}

Result<JobQuery> query_of(const Invocation& invocation, Context& context) {
  JobQuery query;
  query.statuses = kNotEnded;
  query.users = GF_TRY(chosen_owners(invocation, context));
  query.project = GF_TRY(selected_by(invocation, "project"));
  query.fields = screen_needs();
  return query;
}

Result<int> run_gtop(const Invocation& invocation, Context& context) {
  View view{GF_TRY(interval_of(invocation))};
  if (!context.can_move_cursor) {
    return fail(Code::Usage,
                tr("gtop needs a terminal it can draw on; 'ginfo' and 'gqueue' print once"));
  }
  view.panel = [&context](const ListedJobs& listed, const Viewer& viewer) {
    return gpus_panel(listed, viewer, context.paint);
  };
  const Fetch fetch = [query = GF_TRY(query_of(invocation, context)),
                       user = viewer_name(context)](client::Client& daemon) -> Result<ListedJobs> {
    ListedJobs listed = GF_TRY(fetch_one_screen(daemon, query, Listing{}, user));
    listed.machine = GF_TRY(daemon.machine());
    return listed;
  };
  return watch(context, Listing{}, fetch, view);
}

std::vector<Option> gtop_options() {
  std::vector<Option> options = owner_options();
  options.push_back(project_option());
  options.push_back({.name = "interval",
                     .value = "SECONDS",
                     .help = tr("Seconds between updates (default: 2).")});
  return options;
}

}  // namespace

Command gtop_command() {
  return {
      .name = "gtop",
      .summary = tr("watch the GPUs and the queue"),
      .usage = {"[options]"},
      .description =
          tr("Shows on one screen what every GPU does and who has it until when, and below it the "
             "running and waiting jobs, until q or Ctrl-C. The columns are those of 'ginfo' and "
             "'gqueue'.\n\nGPUs beyond the upper half of the terminal, and jobs beyond the lower "
             "one, are counted in a last line."),
      .options = gtop_options(),
      .common = Common::Text,
      .examples = {{"gtop", tr("all GPUs and all jobs")},
                   {"gtop --me", tr("all GPUs and your own jobs")},
                   {"gtop --server lab", tr("those of another machine")}},
      .legends = {{tr("STATUS of a GPU"), gpu_state_legend()}},
      .run = run_gtop,
  };
}

}  // namespace gflow::cli
