// SPDX-License-Identifier: Apache-2.0
#include "lab/simulation.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/blocker.h"

namespace gflow::lab {
namespace {

using std::chrono::milliseconds;

/// Of the virtual boot; late enough that jobs of a snapshot were started after it.
constexpr MonoTime kBegin{std::chrono::hours(24 * 365 * 20)};
constexpr std::size_t kEventsBetweenWatches = 2048;
/// After so many ticks in a row that change nothing, with nothing else to come, nothing ever will.
constexpr int kMaxIdleTicks = 10'000;

std::optional<Stop> stop_of(const Job& job) {
  if (const auto* starting = std::get_if<Starting>(&job.state)) return starting->stop;
  if (const auto* running = std::get_if<Running>(&job.state)) return running->stop;
  return std::nullopt;
}

}  // namespace

Simulation::Simulation(engine::Policy policy,
                       RunnerRules rules,
                       WallTime begins,
                       std::optional<milliseconds> lived)
    : state_(std::move(policy), "lab"), rules_(rules), begins_{begins, kBegin}, now_(begins_) {
  state_.set_lived(lived.value_or(begins.time_since_epoch()), kBegin);
}
Simulation::~Simulation() = default;
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;

milliseconds Simulation::now() const { return now_.mono - begins_.mono; }

void Simulation::restore(Job job, milliseconds work) {
  if (!is_ended(job)) {
    Life life;
    life.id = job.id;
    life.user = job.spec.user.name;
    life.parts = gpu_parts_of(job.spec.request);
    life.submitted = job.submitted - begins_.wall;
    life.work = work;
    life.starts = job.attempts;
    life.preemptions = job.preemptions;
    if (is_active(job)) {
      Attempt& attempt = std::holds_alternative<Starting>(job.state)
                             ? std::get<Starting>(job.state).attempt
                             : std::get<Running>(job.state).attempt;
      attempt.boot_id = "lab";
      attempt.started_mono = kBegin - (begins_.wall - attempt.started);
      life.first_start = attempt.started - begins_.wall;
      auto* running = std::get_if<Running>(&job.state);
      const bool suspended = running != nullptr && running->suspended.has_value();
      if (suspended) running->suspended = kBegin;
      runs_[job.id] = Run{attempt.number, kBegin, milliseconds(0), work, suspended};
      if (!suspended) parts_used_ += life.parts;
    }
    life_by_job_[job.id] = lives_.size();
    lives_.push_back(std::move(life));
  }
  state_.restore(std::move(job));
}

void Simulation::restore(std::vector<Drain> drains, std::vector<NodeHealth> unhealthy) {
  state_.restore(std::move(drains));
  state_.restore(std::move(unhealthy));
}

void Simulation::begin(JobId next_id) {
  state_.restored(next_id);
  for (auto& [id, run] : runs_) {
    at_once_.emplace_back(engine::event::AttemptStarted{id, run.attempt, 1});
    if (!run.suspended) plan_end(id, run);
  }
  note_moment();
}

void Simulation::tell(const engine::Event& event) { step(event); }

void Simulation::submit(const JobSpec& spec, milliseconds at, milliseconds work) {
  Life life;
  life.user = spec.user.name;
  life.parts = gpu_parts_of(spec.request);
  life.submitted = at;
  life.work = work;
  planned_.push({begins_.mono + at, 1, ++number_, {}, submissions_.size(), {}});
  submissions_.push_back({spec, lives_.size()});
  lives_.push_back(std::move(life));
}

void Simulation::run(const std::function<void(std::size_t)>& watch) {
  std::size_t events = 0;
  while (next()) {
    if (++events % kEventsBetweenWatches == 0 && watch) watch(events);
  }
}

/// The next thing that happens; false if there is none.
bool Simulation::next() {
  if (!at_once_.empty()) {
    const auto reports = std::exchange(at_once_, {});
    for (const engine::Event& report : reports) step(report);
    return true;
  }
  if (wake_ && (planned_.empty() || *wake_ <= planned_.top().at)) {
    if (planned_.empty() && runs_.empty() && ++idle_ticks_ > kMaxIdleTicks) return false;
    const milliseconds forward = std::max(*std::exchange(wake_, {}) - now_.mono, milliseconds(0));
    now_.mono += forward;
    now_.wall += forward;
    step(engine::event::Tick{});
    return true;
  }
  if (planned_.empty()) return false;
  const Planned planned = planned_.top();
  planned_.pop();
  now_.wall += planned.at - now_.mono;
  now_.mono = planned.at;
  happen(planned);
  return true;
}

void Simulation::happen(const Planned& planned) {
  if (planned.ended) {
    const auto at = runs_.find(planned.job);
    if (at != runs_.end() && at->second.end == planned.number) end(*planned.ended);
    return;
  }
  Submission& submission = submissions_[planned.submission];
  step(engine::event::Submit{{std::move(submission.spec)}, system_principal()}, planned.submission);
}

void Simulation::step(const engine::Event& event, std::optional<std::size_t> submission) {
  for (const engine::Effect& effect : engine::step(state_, event, now_)) take(effect, submission);
  note_moment();
}

void Simulation::take(const engine::Effect& effect, std::optional<std::size_t> submission) {
  namespace e = engine::effect;
  if (const auto* start = std::get_if<e::Launch>(&effect)) {
    // A step that submits a job and starts it tells of the start first.
    if (submission) name(start->order->job, submissions_[*submission].life);
    launch(start->order->job, start->order->attempt);
  } else if (const auto* told = std::get_if<e::StopAttempt>(&effect)) {
    stop(told->job, told->attempt);
  } else if (const auto* halted = std::get_if<e::Suspend>(&effect)) {
    stand(halted->job, halted->attempt);
  } else if (const auto* resumed = std::get_if<e::Resume>(&effect)) {
    go_on(resumed->job, resumed->attempt);
  } else if (const auto* limit = std::get_if<e::ChangeLimit>(&effect)) {
    const auto at = runs_.find(limit->job);
    if (at != runs_.end() && !at->second.suspended) plan_end(limit->job, at->second);
  } else if (const auto* answer = std::get_if<e::Answer>(&effect)) {
    if (submission) take_answer(*answer, *submission);
  } else if (const auto* wake = std::get_if<e::WakeAt>(&effect)) {
    wake_ = wake->mono;
    if (wake->wall) {
      const MonoTime then = now_.mono + (*wake->wall - now_.wall);
      wake_ = wake_ ? std::min(*wake_, then) : then;
    }
  }
}

void Simulation::take_answer(const engine::effect::Answer& answer, std::size_t submission) {
  const std::size_t at = submissions_[submission].life;
  if (!answer.jobs) {
    lives_[at].trouble = answer.jobs.error().message;
    return;
  }
  name(answer.jobs->front(), at);
}

/// Jobs that have a life keep it.
void Simulation::name(JobId job, std::size_t life) {
  if (life_by_job_.try_emplace(job, life).second) lives_[life].id = job;
}

void Simulation::launch(JobId job, int attempt) {
  Life& life = life_of(job);
  if (!life.first_start) life.first_start = now();
  ++life.starts;
  Run run{attempt, now_.mono};
  if (life.done.count() > 0) run.overhead = rules_.restart_cost;
  run.left = life.work - life.done + run.overhead;
  plan_end(job, runs_[job] = run);
  use(life.parts);
  idle_ticks_ = 0;
  at_once_.emplace_back(engine::event::AttemptStarted{job, attempt, 1});
}

void Simulation::plan_end(JobId job, Run& run) {
  Outcome outcome;
  milliseconds left = run.left - (now_.mono - run.since);
  const JobSpec& spec = state_.find(job)->spec;
  if (spec.time_limit && run.ran + run.left > *spec.time_limit) {
    outcome.reason = EndReason::TimeLimit;
    left = *spec.time_limit - run.ran - (now_.mono - run.since);
  }
  run.end = ++number_;
  planned_.push({now_.mono + std::max(left, milliseconds(0)),
                 0,
                 run.end,
                 job,
                 0,
                 engine::event::AttemptEnded{job, run.attempt, outcome}});
}

void Simulation::stop(JobId job, int attempt) {
  const auto at = runs_.find(job);
  const Job* stopped = state_.find(job);
  if (at == runs_.end() || at->second.attempt != attempt || stopped == nullptr) return;
  const std::optional<Stop> why = stop_of(*stopped);
  Outcome outcome;
  outcome.reason = why ? why->reason : EndReason::Cancelled;
  const milliseconds wait = std::min<milliseconds>(rules_.stop_time, stopped->spec.grace);
  at->second.end = ++number_;
  planned_.push({now_.mono + wait,
                 0,
                 at->second.end,
                 job,
                 0,
                 engine::event::AttemptEnded{job, attempt, outcome}});
}

/// Counts what was run since it began or went on.
void Simulation::halt(Life& life, Run& run) {
  const milliseconds ran = std::min(now_.mono - run.since, run.left);
  const milliseconds loading = std::min(ran, run.overhead);
  run.ran += ran;
  run.left -= ran;
  run.overhead -= loading;
  life.done += ran - loading;
  run.since = now_.mono;
}

void Simulation::stand(JobId job, int attempt) {
  const auto at = runs_.find(job);
  if (at == runs_.end() || at->second.attempt != attempt || at->second.suspended) return;
  Life& life = life_of(job);
  halt(life, at->second);
  at->second.suspended = true;
  at->second.end = 0;
  ++life.preemptions;
  use(-life.parts);
}

void Simulation::go_on(JobId job, int attempt) {
  const auto at = runs_.find(job);
  if (at == runs_.end() || at->second.attempt != attempt || !at->second.suspended) return;
  at->second.suspended = false;
  at->second.since = now_.mono;
  plan_end(job, at->second);
  use(life_of(job).parts);
}

void Simulation::end(const engine::event::AttemptEnded& event) {
  Run& run = runs_.at(event.job);
  Life& life = life_of(event.job);
  if (!run.suspended) {
    halt(life, run);
    use(-life.parts);
  }
  engine::event::AttemptEnded told = event;
  told.outcome.run_time = run.ran;
  if (told.outcome.reason == EndReason::Preempted) ++life.preemptions;
  runs_.erase(event.job);
  step(told);
  // Whether this was its end, or it is queued again, is the engine's to say.
  const Job* job = state_.find(event.job);
  if (job == nullptr || is_ended(*job)) life.ended = now();
}

void Simulation::use(std::int64_t parts) { parts_used_ += parts; }

void Simulation::note_moment() {
  const auto waiting = static_cast<std::int64_t>(state_.count(Status::Queued));
  const Moment moment{now(), parts_used_, waiting};
  if (!moments_.empty() && moments_.back().at == moment.at) {
    moments_.back() = moment;
  } else if (moments_.empty() || moments_.back().parts_used != parts_used_ ||
             moments_.back().waiting != waiting) {
    moments_.push_back(moment);
  }
}

std::vector<Life> Simulation::lives() const {
  std::vector<Life> lives = lives_;
  for (Life& life : lives) {
    if (life.ended || !life.trouble.empty() || !life.id.is_set()) continue;
    const Job* job = state_.find(life.id);
    if (job == nullptr) continue;
    const std::string why = reason_text(state_.blockers(life.id, now_));
    life.trouble = why.empty() ? std::string(status_name(status_of(*job))) : why;
  }
  return lives;
}

}  // namespace gflow::lab
