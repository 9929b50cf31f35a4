// SPDX-License-Identifier: Apache-2.0
#include "cli/control/defrag_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/time.h"
#include "base/translate.h"
#include "core/request_text.h"

namespace gflow::cli {
namespace {

/// "GPU 0,1", "GPU n1:0-3, n2:0-3", "node n1".
std::string place_text(const std::vector<Allocation>& parts, const DefragNames& names) {
  std::vector<std::string> places;
  bool has_gpus = false;
  for (const Allocation& part : parts) {
    const std::string node = printable(part.node);
    const std::string gpus = fmt::format("{}", fmt::join(part.gpus, ","));
    has_gpus = has_gpus || !part.gpus.empty();
    if (part.gpus.empty()) {
      places.push_back(node);
    } else {
      places.push_back(names.has_several_nodes ? node + ":" + gpus : gpus);
    }
  }
  const std::string text = join(places, ", ");
  return has_gpus ? "GPU " + text : tr_format("node {}", text);
}

/// "12"; in a cluster "default/train".
std::string reference(JobId id, const DefragNames& names) {
  const auto job = names.jobs.find(id);
  if (!names.is_cluster || job == names.jobs.end()) return std::to_string(id.value);
  const JobSpec& spec = job->second.spec;
  return printable(spec.user.name) + "/" + printable(spec.name);
}

/// "job 12"
std::string subject(JobId id, const DefragNames& names) {
  const std::string name = reference(id, names);
  return names.is_cluster ? tr_format("pod {}", name) : tr_format("job {}", name);
}

/// "job 12 (4 GPUs)"
std::string job_name(JobId id, const DefragNames& names) {
  const auto job = names.jobs.find(id);
  if (job == names.jobs.end()) return subject(id, names);
  return tr_format("{} ({})", subject(id, names), request_in_words(job->second.spec.request));
}

std::string move_text(const DefragMove& move, const DefragNames& names) {
  return tr_format("move {} from {} to {} ({}, loses {} of run time)",
                   subject(move.job, names),
                   place_text(move.from, names),
                   place_text(move.to, names),
                   names.is_cluster ? tr("made anew") : tr("requeue"),
                   duration_text(move.lost_time));
}

/// Whom it is for: "pod lab/a (1 GPU)", "pod lab/a (1 GPU) and 3 that start together with it".
std::string waiting_name(const DefragPlan& plan, const DefragNames& names) {
  const std::string name = job_name(plan.job, names);
  if (plan.together.empty()) return name;
  return tr_count(plan.together.size(),
                  "{} and {} that starts together with it",
                  "{} and {} that start together with it",
                  name,
                  plan.together.size());
}

std::string why_none(const DefragPlan& plan, const DefragNames& names) {
  const std::string name = waiting_name(plan, names);
  switch (plan.outcome) {
    case DefragOutcome::HasRoom:
      return tr_format("{} has room: 'gjob why {}' tells what else it waits for",
                       name,
                       reference(plan.job, names));
    case DefragOutcome::WaitsForMore:
      return tr_format("{} waits for more than room: 'gjob why {}' tells for what",
                       name,
                       reference(plan.job, names));
    case DefragOutcome::NotEnoughFree:
      return tr_format("{}: no move helps: not enough is free in all", name);
    case DefragOutcome::NothingMovable:
      return tr_format("{}: no move helps: none of the jobs that run there may be moved", name);
    case DefragOutcome::NotSearched:
      return tr_format("{}: not searched: there was too much to look at", name);
    case DefragOutcome::Moves:
    case DefragOutcome::NoMoveHelps:
      break;
  }
  return tr_format("{}: no move helps: those that may be moved cannot make enough room", name);
}

/// "job 12 (4 GPUs) would start", and what may keep it from that.
std::string head_text(const DefragPlan& plan, const DefragNames& names) {
  const std::string name = waiting_name(plan, names);
  if (!plan.is_behind) return tr_format("{} would start", name);
  if (!plan.behind) {
    return tr_format("{} would have room, and start unless that delays one ahead of it", name);
  }
  return tr_format("{} would have room, and start unless that delays {}, which is ahead of it",
                   name,
                   subject(*plan.behind, names));
}

std::string steps_text(const std::vector<std::string>& steps) {
  std::string text;
  for (const std::string& step : steps) text += fmt::format("  {}\n", step);
  return text;
}

std::string plan_text(const DefragPlan& plan, const DefragNames& names) {
  if (plan.outcome != DefragOutcome::Moves) return why_none(plan, names) + '\n';
  const std::string head = head_text(plan, names);
  std::vector<std::string> steps;
  for (const DefragMove& move : plan.moves) steps.push_back(move_text(move, names));
  if (plan.other_moves > 0) {
    steps.push_back(tr_count(static_cast<std::uint64_t>(plan.other_moves),
                             "move {} job of others",
                             "move {} jobs of others",
                             plan.other_moves));
  }
  if (steps.empty()) return tr_format("{} once the jobs above have\n", head);
  if (steps.size() == 1) return tr_format("{}: {}\n", head, steps.front());
  return tr_format("{}:\n", head) + steps_text(steps);
}

bool has_outcome(const api::DefragView& view, DefragOutcome outcome) {
  return std::ranges::find(view.jobs, outcome, &DefragPlan::outcome) != view.jobs.end();
}

/// The command that carries out the first plan, if there is one that may be; "" otherwise.
std::string how_to_apply(const api::DefragView& view, const DefragNames& names) {
  for (const DefragPlan& plan : view.jobs) {
    if (plan.moves.empty() && plan.other_moves == 0) continue;
    if (!why_not_applied(plan, names).empty()) return "";
    if (names.is_cluster) {
      return tr_format(
          "'gctl defrag --apply {}' does it: those that move are evicted, as far as their "
          "disruption budgets let them be, and made anew by what made them; they wait behind the "
          "one that starts, for which their room is kept.\n",
          reference(plan.job, names));
    }
    return tr_format(
        "'gctl defrag --apply {}' does it: job {} gets a priority above those that move, and they "
        "stop, are queued again behind it and start where there is room.\n",
        plan.job.value,
        plan.job.value);
  }
  return "";
}

std::string advice(const api::DefragView& view, const DefragNames& names) {
  std::string text = tr("Nothing was changed.\n") + how_to_apply(view, names);
  if (has_outcome(view, DefragOutcome::NothingMovable)) {
    text +=
        tr("A job may be moved if it was submitted with --preemptible, which 'gjob update JOB "
           "--preemptible' sets later, too. With --preemptible=suspend it stays where its memory "
           "is.\n");
  }
  return text;
}

std::string advice_in_cluster(const api::DefragView& view, const DefragNames& names) {
  std::string text = tr("Nothing was changed.\n") + how_to_apply(view, names);
  if (has_outcome(view, DefragOutcome::NothingMovable)) {
    text +=
        tr("A pod may be moved if what made it makes it anew, and nothing keeps it where it is: "
           "docs/cluster.md.\n");
  }
  return text;
}

}  // namespace

std::string defrag_text(const api::DefragView& view, const DefragNames& names) {
  if (view.jobs.empty()) return tr("no job waits for room\n");
  std::string text;
  for (const DefragPlan& plan : view.jobs) text += plan_text(plan, names);
  return text + '\n' + (names.is_cluster ? advice_in_cluster(view, names) : advice(view, names));
}

std::string applied_text(const DefragPlan& plan,
                         std::optional<int> priority,
                         const DefragNames& names) {
  std::vector<std::string> steps;
  for (const DefragMove& move : plan.moves) {
    steps.push_back(tr_format("{} on {} (loses {} of run time)",
                              subject(move.job, names),
                              place_text(move.from, names),
                              duration_text(move.lost_time)));
  }
  if (names.is_cluster) {
    return tr_format(
               "room is being made for {}: these are evicted, made anew, and wait behind it:\n",
               waiting_name(plan, names)) +
           steps_text(steps);
  }
  return tr_format(
             "{} has priority {} now and starts when these have stopped, unless one ahead of it "
             "takes "
             "the room; they start again where there is room:\n",
             job_name(plan.job, names),
             priority.value_or(kDefaultPriority)) +
         steps_text(steps);
}

std::string why_not_applied(const DefragPlan& plan, const DefragNames& names) {
  const std::string name = waiting_name(plan, names);
  if (plan.outcome != DefragOutcome::Moves) return why_none(plan, names);
  if (plan.other_moves > 0) {
    return tr_format("{}: jobs of others would move, which an operator may ask for", name);
  }
  if (plan.moves.empty()) return tr_format("{} would start once those ahead of it have", name);
  if (!plan.is_behind) return "";
  return tr_format("{} might not start: a job ahead of it keeps its place", name);
}

}  // namespace gflow::cli
