// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/translate.h"
#include "core/principal.h"
#include "core/stop.h"
#include "engine/defrag.h"
#include "engine/state.h"
#include "engine/step_internal.h"
#include "engine/waiting.h"

/// Carrying out what State::defrag() told: who moves stops to make room for who waits, and starts
/// again where there is room. What keeps that room for who waits is what preemption is.
namespace gflow::engine {
namespace {

std::unexpected<Error> not_now(std::string why) { return fail(Code::WrongState, std::move(why)); }

std::string see_plans() { return tr("'gctl defrag' shows the moves there are"); }

/// Two at a time would take each other's room.
Result<void> check_none_is_made(Index& index, const std::vector<Waiting>& waiting) {
  const std::vector<JobId> leaving = preemption_candidates(index).leaving;
  const auto is_leaving = [&leaving](JobId id) {
    return std::ranges::find(leaving, id) != leaving.end();
  };
  for (const Waiting& one : waiting) {
    const auto& victims = std::get<Queued>(index.find(one.job)->state).victims;
    if (std::ranges::none_of(victims, is_leaving)) continue;
    return not_now(
        tr_format("room is being made for job {}: ask again when it has started", one.job.value));
  }
  return {};
}

/// A job that waits, and who is to move for it.
struct Moves {
  JobId job;
  const std::vector<JobId>& moves;
};

/// Whether these moves would start it now, and it is the first that moves would start.
Result<void> check_moves(Index& index,
                         Now now,
                         const std::vector<Waiting>& waiting,
                         const Moves& wanted) {
  const auto plans = Defrag(index, now).run(waiting);
  const auto first =
      std::ranges::find_if(plans, [](const DefragPlan& plan) { return !plan.moves.empty(); });
  const auto asked = std::ranges::find(waiting, wanted.job, &Waiting::job);
  if (first == plans.end() || asked == waiting.end()) {
    return not_now(tr_format("no moves would start job {} now: {}", wanted.job.value, see_plans()));
  }
  if (first->job != wanted.job) {
    return not_now(tr_format(
        "the moves for job {} come before those for job {}", first->job.value, wanted.job.value));
  }
  if (first->is_behind) {
    return not_now(tr_format(
        "job {} might not start: one ahead of it keeps its place; give it a priority above that "
        "one",
        wanted.job.value));
  }
  // Which are the cheapest changes as they run on; that these do is what matters.
  if (Defrag(index, now).would_start(*asked, wanted.moves)) return {};
  return not_now(
      tr_format("these moves would not start job {} now: {}", wanted.job.value, see_plans()));
}

/// The priority of who waits, from now on: above that of all who move.
Result<int> priority_above(const Index& index, const event::ApplyDefrag& wanted) {
  const JobSpec& spec = index.find(wanted.job)->spec;
  int priority = spec.priority;
  for (const JobId id : wanted.moves) {
    const int its = index.find(id)->spec.priority;
    if (its == kMaxPriority) {
      return not_now(tr_format("job {} has the highest priority, and moves for nobody", id.value));
    }
    priority = std::max(priority, its + 1);
  }
  if (priority > spec.priority) {
    GF_CHECK(may_have_priority(index.policy.priority, wanted.by, spec.project, priority));
  }
  return priority;
}

}  // namespace

/// The priority that who waits gets, if all is as it was told.
Result<int> Step::check_defrag(const event::ApplyDefrag& event) const {
  GF_TRY(changeable(event.job, event.by));
  for (const JobId id : event.moves) GF_TRY(changeable(id, event.by));
  if (!index_.policy.preempt) {
    return not_now(tr("no job is stopped to make room here: [scheduler] preempt is false"));
  }
  const auto waiting = first_for_moves(index_, event.most);
  GF_CHECK(check_none_is_made(index_, waiting));
  GF_CHECK(check_moves(index_, index_.now, waiting, {event.job, event.moves}));
  return priority_above(index_, event);
}

void Step::take(const event::ApplyDefrag& event) {
  const auto priority = check_defrag(event);
  if (!priority) return answer(std::unexpected(priority.error()));
  raise_priority(event.job, *priority);
  for (const JobId id : event.moves) preempt(id, event.job);
  note_told(event.job, event.moves.size());
  remember_preemption(event.job, event.moves, true);
  answer(event.moves);
}

void Step::raise_priority(JobId id, int priority) {
  if (index_.find(id)->spec.priority == priority) return;
  index_.change(id, [&](Job& job) { job.spec.priority = priority; });
  saved(id, Happening::Changed);
}

void Step::take(const event::MakeRoom& event) {
  const auto state_of = [this](JobId id) {
    const Job* job = index_.find(id);
    return job == nullptr ? nullptr : &job->state;
  };
  const auto waits = [&](JobId id) {
    return state_of(id) != nullptr && std::holds_alternative<Queued>(*state_of(id));
  };
  const auto runs = [&](JobId id) {
    return state_of(id) != nullptr && std::holds_alternative<Running>(*state_of(id));
  };
  std::vector<JobId> waiting;
  std::vector<JobId> moving;
  std::ranges::copy_if(event.jobs, std::back_inserter(waiting), waits);
  std::ranges::copy_if(event.moves, std::back_inserter(moving), runs);
  for (const JobId id : waiting) {
    raise_priority(id, event.priority);
    remember_preemption(id, moving, !moving.empty());
  }
  for (const JobId id : moving) {
    if (!waiting.empty() && stop_of(*index_.find(id)) == nullptr) preempt(id, waiting.front());
  }
  index_.fronts.open_all();
}

Result<void> State::check_moves(JobId job,
                                const std::vector<JobId>& moves,
                                std::size_t most,
                                Now now) const {
  return engine::check_moves(*index_, now, first_for_moves(*index_, most), {job, moves});
}

}  // namespace gflow::engine
