// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/selection.h"
#include "cli/selection_options.h"
#include "cli/stats/usage_text.h"
#include "command/context.h"
#include "os/clock.h"

namespace gflow::cli {

namespace {

constexpr std::string_view kSinceByDefault = "30d";
constexpr std::string_view kByDefault = api::usage_by_name(api::UsageBy::User);

Result<client::StatisticsWish> wish_of(const Invocation& invocation, Context& context) {
  const WallTime now = os::now().wall;
  client::StatisticsWish wish;
  const std::string since = invocation.get("since");
  if (since != "all") {
    wish.since = GF_TRY(parse_since(since.empty() ? kSinceByDefault : since, now, os::utc_offset));
  }
  if (invocation.has("until")) {
    wish.until = GF_TRY(parse_since(invocation.get("until"), now, os::utc_offset));
  }
  if (wish.since && wish.until && *wish.until <= *wish.since) {
    return fail(Code::Usage, tr("--until is not later than --since"));
  }
  wish.users = GF_TRY(chosen_owners(invocation, context));
  wish.project = GF_TRY(selected_by(invocation, "project"));
  wish.group = GF_TRY(selected_by(invocation, "group"));
  wish.by = invocation.get("by");
  if (wish.by.empty()) wish.by = kByDefault;
  return wish;
}

/// Zeros do not say whether there is such a user or project.
void hint_at_none(Context& context,
                  const client::StatisticsWish& wish,
                  const api::StatisticsView& statistics) {
  const bool is_empty =
      statistics.total.states == api::StatusCounts{} && statistics.total.gpu_seconds == 0;
  std::vector<std::string> users = wish.users;
  std::erase_if(users, [&](const std::string& user) {
    const auto part = std::ranges::find(statistics.parts, user, &api::UsageView::name);
    return !is_empty && (statistics.by != api::usage_by_name(api::UsageBy::User) ||
                         part != statistics.parts.end());
  });
  if (users.empty() && !is_empty) return;
  context.hint(users.empty() ? tr("No jobs.")
                             : tr_format("No jobs of {}.", printable(join(users, ", "))));
  if (wish.since || wish.until) {
    context.hint(tr("'gstats --since all' counts all that are known."));
  }
}

Result<int> run_gstats(const Invocation& invocation, Context& context) {
  context.is_for_programs_off_terminal();
  const auto wish = GF_TRY(wish_of(invocation, context));
  const api::StatisticsView statistics = GF_TRY(context.daemon().statistics(wish));
  if (context.json) {
    context.out << api::write(statistics) << '\n';
    return 0;
  }
  context.show(context.listing([&] {
    return usage_text(statistics, {os::now().wall, os::utc_offset, context.columns, context.paint});
  }));
  hint_at_none(context, wish, statistics);
  return 0;
}

std::vector<Option> gstats_options() {
  std::vector<Option> options = {
      {.name = "since",
       .value = "TIME",
       .help = tr("Count jobs that ended at this time or later: 2h, 3d, today, yesterday, "
                  "2026-03-01, or 'all' that are known (default: 30d).")},
      {.name = "until",
       .value = "TIME",
       .help = tr("Count jobs that ended before this time (default: now).")},
      {.name = "by",
       .value = "PART",
       .help = tr("One row for each user (default) or project, or 'none' for the totals alone."),
       .complete = Complete::Choice,
       .choices = {api::kUsageByNames.begin(), api::kUsageByNames.end()}},
  };
  std::ranges::move(owner_options(), std::back_inserter(options));
  options.push_back(project_option());
  options.push_back(group_option());
  options.push_back(no_pager_option());
  return options;
}

}  // namespace

Command gstats_command() {
  return {
      .name = "gstats",
      .summary = tr("show who used how much, and how long jobs waited"),
      .usage = {"[options]"},
      .description =
          tr("Shows, for each user, how many jobs ended and how many of them failed, how many run "
             "and wait now, the GPUs they hold now and the GPU-hours they held between --since and "
             "--until, and how long their jobs waited and ran. Jobs that run count with what they "
             "held until now, and those that ended later with what they held before --until. A "
             "part of a GPU counts as that part; time in which a GPU was held counts whether it "
             "was busy or not, but not while the job was suspended. Not known is when a job was "
             "interrupted: what it ran is taken to lie right before its last end, or now. Waiting "
             "times are those of jobs that have ended, until their last start; time on hold or "
             "behind a dependency counts. In a pipe the totals are left out, as a user or a "
             "project may have any name: '--by none' shows them alone."),
      .options = gstats_options(),
      .examples = {{"gstats", tr("the last 30 days, by user")},
                   {"gstats --since today --by project", tr("today, by project")},
                   {"gstats --me --since all --by none", tr("your own jobs, all that are known")},
                   {"gstats --since 2026-03-01 --until 2026-04-01 --json",
                    tr("March, for a program")}},
      .legends = {{tr("Columns"), usage_legend()}},
      .run = run_gstats,
  };
}

}  // namespace gflow::cli
