// SPDX-License-Identifier: Apache-2.0
#include "daemon/shell.h"

#include <algorithm>
#include <utility>

#include "base/translate.h"
#include "daemon/shell_plan.h"
#include "server/submission.h"

namespace gflow::daemon {

Shell::Shell(engine::State& state,
             store::Store& store,
             Dispatcher& dispatcher,
             store::Ballast* ballast)
    : state_(state), store_(store), dispatcher_(dispatcher), ballast_(ballast) {}
Shell::~Shell() = default;

std::vector<std::pair<JobId, int>> Shell::take_over() {
  std::vector<std::pair<JobId, int>> under_way;
  for (const Job* job : state_.list({.statuses = kActive})) {
    under_way.emplace_back(job->id, attempt_of(*job)->number);
    take_over(*job, dispatcher_.adopt(*job));
  }
  return under_way;
}

void Shell::adopted(JobId job, int attempt, const executor::Adoption& found) {
  if (const Job* known = in_attempt(job, attempt)) take_over(*known, found);
}

/// Of an attempt about which nothing is known nothing is said: its job stays as it is committed.
void Shell::take_over(const Job& job, const executor::Adoption& found) {
  const int attempt = attempt_of(job)->number;
  if (const auto* over = std::get_if<executor::Over>(&found)) {
    post(engine::event::AttemptEnded{job.id, attempt, over->outcome});
  } else if (const auto* runs = std::get_if<executor::StillRuns>(&found)) {
    post(engine::event::AttemptStarted{job.id, attempt, runs->pid, runs->watches, runs->isolation});
    say_again(job, *runs);
  } else if (std::holds_alternative<executor::NeverRan>(found)) {
    post(engine::event::AttemptRevoked{job.id, attempt});
  }
}

/// What was committed may never have been said, that there is no limit any more, too: it is safe to
/// say it twice. One that was to lend its GPU and of which nothing was taken has it still.
void Shell::say_again(const Job& job, const executor::StillRuns& runs) {
  const auto* running = std::get_if<Running>(&job.state);
  const bool lends = running != nullptr && running->lends;
  const bool moves = running != nullptr && running->move.has_value();
  if (!moves && (runs.parked != ParkedMemory{} || lends)) {
    post(engine::event::ParkingChanged{job.id, attempt_of(job)->number, runs.parked});
  }
  dispatcher_.change_limit(job);
  const Status status = status_of(job);
  if (status == Status::Completing) return dispatcher_.stop(job);
  if (running == nullptr) return;
  if (moves) {
    moves_.emplace_back(job.id, attempt_of(job)->number);
    return;
  }
  const bool has_it = runs.parked.how == Parking::None && running->suspended_by.empty();
  const bool is_away = lends ? !has_it : running->suspended.has_value();
  return is_away ? dispatcher_.suspend(job) : dispatcher_.resume(job);
}

/// How much of host memory one may take is told by the GPUs, and the first reading by them comes
/// later than what is taken over.
void Shell::say_moves() {
  std::erase_if(moves_, [this](const auto& move) {
    const Job* job = in_attempt(move.first, move.second);
    const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
    if (running == nullptr || !running->move || running->stop) return true;
    if (!state_.nodes().contains(running->attempt.allocation.node)) return false;
    dispatcher_.move(*job);
    return true;
  });
}

void Shell::post(engine::Event event, Answer answer, Check check) {
  Posted posted;
  posted.event = std::move(event);
  posted.answer = std::move(answer);
  posted.check = std::move(check);
  posted_.push_back(std::move(posted));
}

void Shell::submit(api::SubmitRequest request,
                   const Principal& by,
                   Answer answer,
                   server::SubmitIf condition) {
  server::Submission submission = server::submission_of(std::move(request.items), by);
  Posted posted;
  posted.payloads = std::move(submission.payloads);
  posted.event = std::move(submission.event);
  posted.answer = std::move(answer);
  posted.check = std::move(condition.before);
  posted.after = std::move(condition.after);
  posted.key = std::move(request.idempotency_key);
  posted.digest = std::move(request.digest);
  posted.uid = record_of(by).uid;
  posted_.push_back(std::move(posted));
}

Result<Shell::Ticked> Shell::tick(Now now, const std::function<bool()>& is_enough) {
  auto plan = unwritten_ ? std::move(unwritten_) : std::make_unique<Plan>();
  while (!posted_.empty()) {
    Posted posted = std::move(posted_.front());
    posted_.pop_front();
    decide(posted, now, *plan);
    if (is_enough && is_enough()) break;
  }
  if (auto written = write(*plan, now); !written) {
    if (written.error().code != Code::Exhausted) return std::unexpected(std::move(written).error());
    return put_off(std::move(plan), now);
  }
  regain_room();
  act(*plan);
  say_moves();
  plan->ticked.events = std::move(plan->events);
  for (auto& reply : plan->replies) reply.answer(std::move(reply.jobs));
  return std::move(plan->ticked);
}

/// What was submitted under the key of this one before, in this tick or an earlier one.
Result<std::optional<store::Submission>> Shell::submitted_before(const Posted& posted,
                                                                 Now now,
                                                                 const Plan& plan) {
  if (posted.key.empty()) return std::nullopt;
  const auto same = [&posted](const store::Submission& other) {
    return other.uid == posted.uid && other.key == posted.key;
  };
  const auto at = std::ranges::find_if(plan.submissions, same);
  if (at != plan.submissions.end()) return *at;
  return store_.find_submission(posted.uid, posted.key, state_.lived(now.mono));
}

/// Whether one more key of this user can be remembered.
Result<void> Shell::check_keys(const Posted& posted, Now now, const Plan& plan) {
  if (posted.key.empty()) return {};
  const std::size_t most = state_.policy().max_keys_per_user;
  const auto stored = GF_TRY(store_.count_submissions(posted.uid, state_.lived(now.mono)));
  const auto planned = std::ranges::count(plan.submissions, posted.uid, &store::Submission::uid);
  if (stored + static_cast<std::size_t>(planned) < most) return {};
  return fail(Code::Exhausted,
              tr_format("{} submissions with an Idempotency-Key in 24 hours are the maximum per "
                        "user (limits.max_keys_per_user): submit more jobs in one, as arrays or "
                        "batches, or try again later",
                        most));
}

/// The answer to a submission that needs no new decision: a repeated one, or one there is no room
/// on the disk for.
std::optional<Result<std::vector<JobId>>> Shell::answered_before(const Posted& posted,
                                                                 Now now,
                                                                 const Plan& plan) {
  if (!is_taken_when_full(posted.event)) {
    make_room();
    // With room again, what was put off is written with this; a submission can be taken back if
    // not.
    const bool is_tried = std::holds_alternative<engine::event::Submit>(posted.event) &&
                          ballast_ != nullptr && ballast_->held();
    if ((plan.was_put_off && !is_tried) || is_short_of_disk()) {
      return fail(Code::Exhausted, disk_text(others_jobs_));
    }
  }
  if (!std::holds_alternative<engine::event::Submit>(posted.event)) return std::nullopt;
  const auto before = submitted_before(posted, now, plan);
  if (!before) return std::unexpected(before.error());
  if (*before && !(*before)->digest.empty() && (*before)->digest != posted.digest) {
    return fail(
        Code::KeyReused,
        tr("this Idempotency-Key was used for another submission: repeat that one as it was, or "
           "use a new key"));
  }
  if (*before) return (*before)->jobs;
  if (auto room = check_keys(posted, now, plan); !room) {
    return std::unexpected(std::move(room).error());
  }
  if (ballast_ != nullptr && !ballast_->held()) {
    return fail(Code::Exhausted, disk_text(others_jobs_));
  }
  return std::nullopt;
}

namespace {

bool is_of_nodes(const engine::Event& event) {
  namespace e = engine::event;
  return std::holds_alternative<e::NodesChanged>(event) ||
         std::holds_alternative<e::NodeUnreachable>(event) ||
         std::holds_alternative<e::NodeRemoved>(event);
}

}  // namespace

void Shell::decide(Posted& posted, Now now, Plan& plan) {
  const MessagesOfThread language(posted.messages);
  if (auto before = answered_before(posted, now, plan)) {
    if (!posted.answer) return;
    for (Unwritten& other : plan.unwritten) {
      const bool same = !posted.key.empty() && other.uid == posted.uid && other.key == posted.key;
      if (same && *before) other.replies.push_back(plan.replies.size());
    }
    plan.replies.emplace_back(std::move(posted.answer), std::move(*before));
    return;
  }
  if (auto may = posted.check ? posted.check() : Result<void>(); !may) {
    if (!posted.answer) return;
    plan.replies.emplace_back(std::move(posted.answer), std::unexpected(std::move(may).error()));
    return;
  }
  if (std::holds_alternative<engine::event::Cancel>(posted.event)) plan.stopping = true;
  if (is_of_nodes(posted.event)) plan.ticked.told_of_nodes = true;
  if (const auto* ended = std::get_if<engine::event::AttemptEnded>(&posted.event)) {
    plan.attempts_over.emplace_back(ended->job, ended->attempt);
  }
  if (const auto* revoked = std::get_if<engine::event::AttemptRevoked>(&posted.event)) {
    plan.attempts_over.emplace_back(revoked->job, revoked->attempt);
  }
  auto effects = engine::step(state_, posted.event, now);
  if (auto taken = taken_after(posted, effects); !taken) {
    return take_back(std::move(effects), taken.error(), posted, plan, now);
  }
  for (const engine::Effect& effect : effects) take(effect, posted, plan);
}

/// What SubmitIf::after says of the jobs that were just decided.
Result<void> Shell::taken_after(const Posted& posted, const std::vector<engine::Effect>& effects) {
  if (!posted.after) return {};
  for (const engine::Effect& effect : effects) {
    const auto* answer = std::get_if<engine::effect::Answer>(&effect);
    if (answer != nullptr && answer->jobs) return posted.after(answer->jobs->front());
  }
  return {};
}

/// What was decided with a submission stands, but for its jobs.
void Shell::take_back(
    std::vector<engine::Effect> effects, const Error& why, Posted& posted, Plan& plan, Now now) {
  std::vector<JobId> jobs;
  for (engine::Effect& effect : effects) {
    if (auto* answer = std::get_if<engine::effect::Answer>(&effect)) {
      jobs = std::exchange(answer->jobs, std::unexpected(why)).value_or(std::vector<JobId>{});
    }
    take(effect, posted, plan);
  }
  drop_from(plan, jobs);
  for (const auto& effect : engine::step(state_, engine::event::Withdraw{jobs}, now)) {
    take(effect, posted, plan);
  }
}

void Shell::take(const engine::Effect& effect, Posted& posted, Plan& plan) {
  namespace e = engine::effect;
  if (const auto* save = std::get_if<e::Save>(&effect)) {
    plan.saves.insert(save->job);
    const Job* job = state_.find(save->job);
    if (save->what != Happening::Nothing && job != nullptr) {
      plan.events.events.push_back(event_of(*job, save->what));
    }
  } else if (const auto* added = std::get_if<e::SaveRange>(&effect)) {
    plan.ranges.push_back(added->range);
    plan.ticked.added.push_back(added->range);
    plan.events.events.push_back(event_of(*added->range, Happening::Submitted));
  } else if (const auto* forget = std::get_if<e::Forget>(&effect)) {
    plan.saves.erase(forget->job);
    plan.payloads.erase(forget->job);
    plan.forgets.push_back(forget->job);
  } else if (std::holds_alternative<e::SaveDrains>(effect)) {
    plan.new_drains = true;
    plan.ticked.told_of_nodes = true;
  } else if (std::holds_alternative<e::SaveSlices>(effect)) {
    plan.new_slices = true;
  } else if (std::holds_alternative<e::SaveHealth>(effect)) {
    plan.new_health = true;
    plan.ticked.told_of_nodes = true;
  } else if (const auto* notify = std::get_if<e::Notify>(&effect)) {
    plan.ticked.changed.insert(notify->job);
  } else if (const auto* overuse = std::get_if<e::Overuse>(&effect)) {
    plan.ticked.overuses.push_back(*overuse);
  } else if (const auto* wake = std::get_if<e::WakeAt>(&effect)) {
    plan.ticked.wake_mono = wake->mono;
    plan.ticked.wake_wall = wake->wall;
  } else if (const auto* answer = std::get_if<e::Answer>(&effect)) {
    if (answer->jobs && !posted.payloads.empty()) {
      note_submission(posted, *answer->jobs, plan);
    }
    if (posted.answer) {
      plan.replies.emplace_back(
          std::move(posted.answer), answer->jobs, is_taken_when_full(posted.event));
    }
  } else {
    plan.acts.push_back(effect);
  }
}

void Shell::note_submission(Posted& posted, const std::vector<JobId>& ids, Plan& plan) const {
  Unwritten unwritten{.jobs = ids, .uid = posted.uid, .key = posted.key, .replies = {}};
  auto first = ids.begin();
  for (TaskPayload& payload : posted.payloads) {
    const auto count = static_cast<std::ptrdiff_t>(payload.count());
    const auto range = std::ranges::lower_bound(
        plan.ranges, *first, {}, [](const auto& r) { return r->first.id; });
    const bool is_range = range != plan.ranges.end() && (*range)->first.id == *first;
    unwritten.bytes +=
        static_cast<std::size_t>(is_range ? bytes_of(**range) : bytes_of(*state_.find(*first)));
    plan.payloads[*first] = std::move(payload);
    first += count;
  }
  if (posted.answer) unwritten.replies.push_back(plan.replies.size());
  plan.new_ids = true;
  if (!posted.key.empty()) {
    plan.submissions.push_back({posted.uid, posted.key, ids, posted.digest});
  }
  plan.unwritten.push_back(std::move(unwritten));
}

/// What of the new jobs alike is as they came: all but those that are saved on their own, or gone.
std::vector<JobRange> Shell::ranges_to_save(const Plan& plan) {
  std::vector<JobRange> ranges;
  std::set<JobId> others;
  if (!plan.ranges.empty()) others.insert(plan.forgets.begin(), plan.forgets.end());
  for (const auto& range : plan.ranges) {
    others.insert(plan.saves.lower_bound(range->first.id), plan.saves.upper_bound(range->last()));
    std::uint64_t from = 0;
    const auto add_until = [&](std::uint64_t until) {
      if (from < until) ranges.push_back(range->part(from, until - from));
      from = until + 1;
    };
    const auto end = others.upper_bound(range->last());
    for (auto other = others.lower_bound(range->first.id); other != end; ++other) {
      add_until(other->value - range->first.id.value);
    }
    add_until(range->count);
  }
  return ranges;
}

Result<void> Shell::commit(Plan& plan, Now now) {
  store::Batch batch;
  for (const JobId id : plan.saves) batch.saves.push_back(state_.find(id));
  batch.ranges = ranges_to_save(plan);
  for (const auto& [id, payload] : plan.payloads) {
    if (payload.tasks) {
      batch.arrays.push_back({id, *payload.tasks, payload.shared.get()});
    } else {
      batch.payloads.push_back({id, &payload.own, payload.shared.get()});
    }
  }
  batch.forgets = plan.forgets;
  if (!plan.forgets.empty()) batch.forgotten = state_.forgotten();
  batch.submissions = plan.submissions;
  if (plan.new_ids) batch.next_id = state_.next_id();
  if (plan.new_drains) batch.drains = state_.drains();
  if (plan.new_health) batch.unhealthy = state_.unhealthy();
  if (plan.new_slices) batch.slices = state_.slices();
  batch.lived = store::Lived{state_.lived(now.mono), now.mono, state_.boot_id()};
  plan.events.first = store_.next_event(now.wall);
  plan.events.at = now.wall;
  batch.events = &plan.events;
  if (batch.empty()) return {};
  auto done = store_.commit(batch);
  // Submissions go before what was set aside is called upon; see write().
  if (!done && done.error().code == Code::Exhausted && !plan.unwritten.empty()) return done;
  // A step a tick: whatever filled the disk takes what it finds. The last ones are for those who
  // cancel it.
  if (done || done.error().code != Code::Exhausted || ballast_ == nullptr) return done;
  if (ballast_->steps_left() <= (plan.stopping ? 0 : kKeptForCancelling)) return done;
  ballast_->release_step();
  return store_.commit(batch);
}

/// The job if it still is in this attempt: what came later in the tick may have ended it.
const Job* Shell::in_attempt(JobId id, int attempt) const {
  const Job* job = state_.find(id);
  const bool is_in_it = job != nullptr && is_active(*job) && attempt_of(*job)->number == attempt;
  return is_in_it ? job : nullptr;
}

void Shell::act(const engine::Effect& effect) {
  namespace e = engine::effect;
  if (const auto* launch = std::get_if<e::Launch>(&effect)) {
    return launches_.push_back(launch->order);
  }
  const auto tell = [this](const auto& about, void (Dispatcher::*what)(const Job&)) {
    if (const auto order = take_launch(about.job, about.attempt)) launch(*order);
    if (const Job* job = in_attempt(about.job, about.attempt)) (dispatcher_.*what)(*job);
  };
  if (const auto* to_stop = std::get_if<e::StopAttempt>(&effect)) {
    return stop(to_stop->job, to_stop->attempt);
  }
  if (const auto* message = std::get_if<e::Signal>(&effect)) {
    const Job* job = in_attempt(message->job, message->attempt);
    if (job != nullptr) dispatcher_.signal(*job, message->number);
    return;
  }
  if (const auto* halt = std::get_if<e::Suspend>(&effect)) return tell(*halt, &Dispatcher::suspend);
  if (const auto* go = std::get_if<e::Resume>(&effect)) return tell(*go, &Dispatcher::resume);
  if (const auto* move = std::get_if<e::Move>(&effect)) return tell(*move, &Dispatcher::move);
  if (const auto* cut = std::get_if<e::CutSlice>(&effect)) return dispatcher_.cut(cut->slice);
  const auto* limit = std::get_if<e::ChangeLimit>(&effect);
  if (limit != nullptr) tell(*limit, &Dispatcher::change_limit);
}

/// The order of an attempt that was still to be launched, which it is not any more; null if it was.
std::shared_ptr<const LaunchOrder> Shell::take_launch(JobId job, int attempt) {
  const auto at = std::ranges::find_if(
      launches_, [&](const auto& order) { return order->job == job && order->attempt == attempt; });
  if (at == launches_.end()) return nullptr;
  auto order = std::move(*at);
  launches_.erase(at);
  return order;
}

void Shell::launch(const LaunchOrder& order) {
  if (in_attempt(order.job, order.attempt) != nullptr) dispatcher_.launch(order);
}

/// An attempt that was not launched yet never will be.
void Shell::stop(JobId id, int attempt) {
  if (take_launch(id, attempt)) return post(engine::event::AttemptRevoked{id, attempt});
  if (const Job* job = in_attempt(id, attempt)) dispatcher_.stop(*job);
}

void Shell::launch_next() {
  const auto order = std::move(launches_.front());
  launches_.pop_front();
  launch(*order);
}

void Shell::act(const Plan& plan) {
  for (const engine::Effect& effect : plan.acts) act(effect);
  for (const auto& [job, attempt] : plan.attempts_over) dispatcher_.forget_attempt(job, attempt);
  for (const JobId job : plan.forgets) dispatcher_.forget_job(job);
}

}  // namespace gflow::daemon
