// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <ostream>
#include <vector>

#include "api/json.h"
#include "base/translate.h"
#include "cli/control/defrag_text.h"
#include "cli/control/subcommands.h"
#include "cli/selection.h"
#include "command/context.h"
#include "command/wrap.h"

namespace gflow::cli {
namespace {

bool is_for(const DefragPlan& plan, const std::vector<JobId>& jobs) {
  return std::ranges::any_of(jobs, [&plan](JobId id) { return plan.starts(id); });
}

/// Of these jobs, and of those ahead whose moves theirs begin with.
void keep(const std::vector<JobId>& jobs, api::DefragView& view) {
  std::size_t last = 0;
  for (std::size_t i = 0; i < view.jobs.size(); ++i) {
    if (is_for(view.jobs[i], jobs)) last = i + 1;
  }
  view.jobs.resize(last);
  std::erase_if(view.jobs, [&jobs](const DefragPlan& plan) {
    return plan.outcome != DefragOutcome::Moves && !is_for(plan, jobs);
  });
}

std::string not_waiting(JobId id) {
  return tr_format("job {} is none of the first {} that wait for room: 'gjob why {}'",
                   id.value,
                   api::kMaxDefrag,
                   id.value);
}

/// Says of each that is none of the first that wait for room what is true of it.
Result<void> note_others(const std::vector<JobId>& jobs,
                         const api::DefragView& view,
                         Context& context) {
  for (const JobId id : jobs) {
    const auto is_it = [id](const DefragPlan& plan) { return plan.starts(id); };
    if (std::ranges::any_of(view.jobs, is_it)) continue;
    GF_TRY(context.daemon().job(id));
    context.note(not_waiting(id));
  }
  return {};
}

Result<DefragNames> names_in(const api::DefragView& view, Context& context) {
  DefragNames names;
  if (view.jobs.empty()) return names;
  names.has_several_nodes = GF_TRY(context.daemon().machine()).nodes.size() > 1;
  names.is_cluster = GF_TRY(context.daemon().name_space()).has_value();
  JobQuery query;
  for (const DefragPlan& plan : view.jobs) {
    query.jobs.push_back(plan.job);
    if (plan.behind) query.jobs.push_back(*plan.behind);
    for (const DefragMove& move : plan.moves) query.jobs.push_back(move.job);
  }
  std::ranges::sort(query.jobs);
  const auto repeated = std::ranges::unique(query.jobs);
  query.jobs.erase(repeated.begin(), repeated.end());
  for (api::JobView& job : GF_TRY(fetch_jobs(context.daemon(), query)).jobs) {
    names.jobs.emplace(job.id, std::move(job));
  }
  return names;
}

/// What is told of the one job whose moves are to be made. Errors: that there are none.
Result<DefragPlan> plan_for(const std::vector<JobId>& jobs, Context& context) {
  if (jobs.size() != 1) return fail(Code::Usage, tr("--apply takes one job"));
  const api::DefragView view = GF_TRY(context.daemon().defrag(api::kMaxDefrag));
  const auto plan = std::ranges::find_if(
      view.jobs, [&jobs](const DefragPlan& one) { return one.starts(jobs.front()); });
  if (plan != view.jobs.end()) return *plan;
  GF_TRY(context.daemon().job(jobs.front()));
  return fail(Code::WrongState, not_waiting(jobs.front()));
}

Result<int> run_apply(const std::vector<JobId>& jobs, Context& context) {
  const DefragPlan plan = GF_TRY(plan_for(jobs, context));
  const DefragNames names = GF_TRY(names_in({{plan}}, context));
  const std::string why_not = why_not_applied(plan, names);
  if (!why_not.empty()) return fail(Code::WrongState, why_not);
  api::DefragRequest request{.job = plan.job, .moves = {}};
  for (const DefragMove& move : plan.moves) request.moves.push_back(move.job);
  const auto moved = GF_TRY(context.daemon().apply_defrag(request));
  if (context.json) {
    context.out << api::write_job_ids(moved) << '\n';
    return 0;
  }
  std::optional<int> priority;  // in a cluster that is the scheduler's alone
  if (!names.is_cluster) priority = GF_TRY(context.daemon().job(plan.job)).spec.priority;
  context.out << fit_lines(applied_text(plan, priority, names), context.columns);
  return 0;
}

Result<int> run_defrag(const Invocation& invocation, Context& context) {
  std::vector<JobId> jobs;
  if (!invocation.words.empty()) jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  if (invocation.has("apply")) return run_apply(jobs, context);
  const std::size_t most = jobs.empty() ? api::kUsualDefrag : api::kMaxDefrag;
  api::DefragView view = GF_TRY(context.daemon().defrag(most));
  if (!jobs.empty()) {
    GF_CHECK(note_others(jobs, view, context));
    keep(jobs, view);
  }
  if (context.json) {
    context.out << api::write(view) << '\n';
    return 0;
  }
  const DefragNames names = GF_TRY(names_in(view, context));
  context.out << fit_lines(defrag_text(view, names), context.columns);
  return 0;
}

}  // namespace

Command gctl_defrag_command() {
  return {
      .name = "defrag",
      .summary = tr("show, or make, the moves of running jobs that start those that wait"),
      .usage = {"[--plan] [JOB...]", "--apply JOB"},
      .description =
          tr("Where enough is free for a job, but in pieces, moves of running jobs make room for "
             "it. For the first jobs that wait this shows the cheapest moves, by the run time that "
             "is lost on GPUs, or why no move helps. Each plan begins where those above it end. "
             "Only jobs submitted with --preemptible are moved: they stop, are queued again and "
             "start elsewhere. Nothing is changed without --apply. In a cluster the moves are "
             "those of pods that are made anew when they are evicted, within their disruption "
             "budgets; of pods that start together it is told what starts all of them."),
      .options = {{.name = "plan",
                   .help = tr("Show the moves and change nothing, as without an option.")},
                  {.name = "apply",
                   .help =
                       tr("Make the moves for one job, the first for which there are any: it "
                          "gets a priority above those that move, and starts when they have "
                          "stopped. For who may change them all and give that priority, which by "
                          "default is an operator; in a cluster, for who has the Role "
                          "gflow-mover."),
                   .excludes = {"plan"}}},
      .words = {.name = "JOB...",
                .help = tr("Only these jobs, and those ahead whose moves theirs build on; else the "
                           "first 20 that wait for room."),
                .most = kAnyNumber,
                .complete = Complete::Job},
      .examples = {{"gctl defrag", tr("show which moves would start jobs that wait")},
                   {"gctl defrag --json 42", tr("show those for job 42 as JSON")},
                   {"gctl defrag --apply 42", tr("make them")}},
      .run = run_defrag,
  };
}

}  // namespace gflow::cli
