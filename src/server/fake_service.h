// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/machine_for_tests.h"
#include "engine/step.h"
#include "server/event_journal.h"
#include "server/service.h"
#include "server/submission.h"

namespace gflow::server {

/// A daemon for tests without store, runner and devices: the engine decides, everything it wants
/// launched runs at once, and nothing ends unless told. Time stands still unless moved. Answers
/// come when the owner runs `later`, as they come from a later tick of the real loop.
class FakeService : public Service {
 public:
  /// `post` runs a function in a later turn.
  using Post = std::function<void(std::function<void()>)>;

  explicit FakeService(Post post) : post_(std::move(post)), state_(engine::Policy{}, "boot") {
    state_.restored(JobId(1));
    Machine machine = machine_with_gpus("lab1", 2, "NVIDIA H100", Memory::gib(80));
    machine.source = "sim:2xH100";
    apply(engine::event::NodesChanged{{machine}});
  }

  [[nodiscard]] const engine::State& state() const override { return state_; }
  [[nodiscard]] Now now() const override { return now_; }
  [[nodiscard]] std::optional<JobId> owner_of(int /*pid*/) const override { return owner; }
  std::optional<JobId> owner;  ///< of every process
  [[nodiscard]] std::optional<GpuIsolation> gpu_isolation(const Job& /*job*/) const override {
    return GpuIsolation::Filter;
  }
  [[nodiscard]] GpuLimits gpu_limits(const Job& /*job*/) const override {
    return {.memory = GpuLimit::Interposer};
  }
  [[nodiscard]] PortBlock ports(const Job& /*job*/) const override { return {41000, 8}; }
  [[nodiscard]] std::string log_path(JobId job) const override {
    return "/logs/" + std::to_string(job.value) + ".log";
  }

  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              SubmitIf condition = {}) override {
    const auto key = std::pair(record_of(by).uid, request.idempotency_key);
    if (const auto known = submissions_.find(key); known != submissions_.end()) {
      return post_([answer = std::move(answer), jobs = known->second] { answer(jobs); });
    }
    Submission submission = submission_of(std::move(request.items), by);
    for (TaskPayload& payload : submission.payloads) payloads.push_back(std::move(payload));
    const auto may = condition.before ? condition.before() : Result<void>();
    auto jobs = may ? apply(submission.event) : std::unexpected(may.error());
    if (jobs && condition.after) {
      if (auto done = condition.after(jobs->front()); !done) {
        (void)apply(engine::event::Withdraw{*jobs});
        jobs = std::unexpected(std::move(done).error());
      }
    }
    if (jobs && !key.second.empty()) submissions_[key] = *jobs;
    answer_later(std::move(jobs), std::move(answer));
  }

  void request(engine::Event event, Answer answer, Check check = {}) override {
    const auto may = check ? check() : Result<void>();
    answer_later(may ? apply(event) : std::unexpected(may.error()), std::move(answer));
  }

  void answer_later(Result<std::vector<JobId>> jobs, Answer answer) {
    auto call = [answer = std::move(answer), jobs = std::move(jobs)] { answer(jobs); };
    if (hold_answers) {
      held_.emplace_back(std::move(call));
      if (on_hold) on_hold();
    } else {
      post_(std::move(call));
    }
  }

  std::shared_ptr<void> on_change(std::uint64_t revision,
                                  std::optional<JobId> job,
                                  std::chrono::milliseconds /*most*/,
                                  std::function<void()> then) override {
    waiters_.push_back({revision, job, std::move(then)});
    wake();
    if (on_wait) on_wait();
    return {this, [let_go = on_let_go](void*) {
              if (let_go) let_go();
            }};
  }

  [[nodiscard]] EventJournal& events() override { return journal; }
  [[nodiscard]] const Counters& counters() const override { return counted; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs /*shown*/) const override {
    api::DaemonView view;
    view.version = "0.1.0";
    view.mode = "user";
    return view;
  }
  [[nodiscard]] std::vector<api::SettingView> settings() const override {
    return {{.name = "scheduler.preempt", .value = "true", .origin = "default"},
            {.name = "limits.max_gpus_of", .value = "alice=8, bob=2, carol=1"}};
  }
  [[nodiscard]] const TokenTable& tokens() const override { return tokens_; }
  Result<void> keep_tokens(std::vector<Token> tokens) override {
    if (kept) tokens_.replace(std::move(tokens));
    return kept;
  }
  void stop() override { stopped = true; }
  Result<void> reload() override { return reloaded; }
  [[nodiscard]] Result<void> ready() const override { return is_ready; }

  /// Lets the engine decide; the answer it gave, if any.
  Result<std::vector<JobId>> apply(const engine::Event& event) {
    Result<std::vector<JobId>> answered;
    std::deque<engine::Event> events = {event};
    for (; !events.empty(); events.pop_front()) {
      for (const engine::Effect& effect : engine::step(state_, events.front(), now_)) {
        if (const auto* launch = std::get_if<engine::effect::Launch>(&effect)) {
          const LaunchOrder& order = *launch->order;
          events.emplace_back(engine::event::AttemptStarted{order.job, order.attempt, 100});
        } else if (const auto* answer = std::get_if<engine::effect::Answer>(&effect)) {
          answered = answer->jobs;
        } else if (const auto* notify = std::get_if<engine::effect::Notify>(&effect)) {
          changed_[notify->job] = state_.revision();
        }
      }
    }
    wake();
    return answered;
  }
  void end(JobId job, Outcome outcome) {
    (void)apply(engine::event::AttemptEnded{job, state_.find(job)->attempts, std::move(outcome)});
  }
  void advance(std::chrono::milliseconds time) {
    now_.wall += time;
    now_.mono += time;
  }
  /// The clock of the calendar; no time passes.
  void set_clock(std::chrono::hours by) { now_.wall += by; }
  /// Everyone who waits for a change has waited long enough.
  void end_waits() {
    for (Waiter& waiter : std::exchange(waiters_, {})) post_(std::move(waiter.then));
  }
  void release_answers() {
    hold_answers = false;
    for (auto& call : std::exchange(held_, {})) post_(std::move(call));
  }

  bool hold_answers = false;
  bool stopped = false;
  Result<void> reloaded;
  Result<void> is_ready;
  Result<void> kept;                ///< what keeping tokens comes to
  std::function<void()> on_wait;    ///< called for everyone who starts to wait for a change
  std::function<void()> on_let_go;  ///< called when nobody wants the change any more, or got it
  std::function<void()> on_hold;    ///< called for every answer that is held back
  std::vector<TaskPayload> payloads;
  Counters counted;
  EventJournal journal;

 private:
  TokenTable tokens_;
  struct Waiter {
    std::uint64_t revision = 0;
    std::optional<JobId> job;
    std::function<void()> then;
  };
  [[nodiscard]] bool is_due(const Waiter& waiter) const {
    if (!waiter.job) return state_.revision() != waiter.revision;
    const auto changed = changed_.find(*waiter.job);
    return changed != changed_.end() && changed->second > waiter.revision;
  }
  void wake() {
    std::vector<Waiter> waiting;
    for (Waiter& waiter : std::exchange(waiters_, {})) {
      if (is_due(waiter)) {
        post_(std::move(waiter.then));
      } else {
        waiting.push_back(std::move(waiter));
      }
    }
    waiters_ = std::move(waiting);
  }

  Post post_;
  engine::State state_;
  Now now_{WallTime(std::chrono::milliseconds(1'772'366'400'000)), MonoTime(std::chrono::hours(1))};
  std::map<std::pair<std::uint32_t, std::string>, std::vector<JobId>> submissions_;
  std::map<JobId, std::uint64_t> changed_;
  std::vector<Waiter> waiters_;
  std::vector<std::function<void()>> held_;
};

}  // namespace gflow::server
