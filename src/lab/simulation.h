// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "engine/step.h"

namespace gflow::lab {

/// How the simulated runner behaves.
struct RunnerRules {
  /// What starting again costs a job that was stopped to make room: loading its checkpoint. It
  /// holds its devices meanwhile.
  std::chrono::milliseconds restart_cost = std::chrono::seconds(60);
  /// From being told to stop to being gone; never longer than the job's grace.
  std::chrono::milliseconds stop_time{0};
};

/// What became of a job.
struct Life {
  JobId id;  ///< not set if it was refused
  std::string user;
  std::int64_t parts = 0;  ///< of GPUs, all nodes together; Share::kWholeParts is one
  std::chrono::milliseconds submitted{0};  ///< on the clock of the simulation
  std::chrono::milliseconds work{0};       ///< how long it has to run
  std::chrono::milliseconds done{0};       ///< how much of it was run
  std::optional<std::chrono::milliseconds> first_start;
  std::optional<std::chrono::milliseconds> ended;
  int starts = 0;
  int preemptions = 0;  ///< stopped, or suspended, for another
  std::string trouble;  ///< why it was refused, or never started
};

/// GPUs in use and jobs waiting, from a moment on.
struct Moment {
  std::chrono::milliseconds at{0};
  std::int64_t parts_used = 0;
  std::int64_t waiting = 0;
};

/// The engine on a clock that jumps from one event to the next: the very `step` of the daemon, with
/// a runner that knows how long each job takes. The same calls give the same lives, byte for byte.
class Simulation {
 public:
  /// `lived`: the time gflow had seen pass when it begins; if empty, what the calendar says.
  Simulation(engine::Policy policy,
             RunnerRules rules,
             WallTime begins,
             std::optional<std::chrono::milliseconds> lived = {});
  ~Simulation();
  Simulation(Simulation&&) noexcept;
  Simulation& operator=(Simulation&&) noexcept;

  /// Takes a job as a snapshot had it; `work`: how long it still has to run. Before begin().
  void restore(Job job, std::chrono::milliseconds work);
  /// The same of what is drained, and of nodes on which launches fail.
  void restore(std::vector<Drain> drains, std::vector<NodeHealth> unhealthy);
  /// No more restore(); the smallest id free is `next_id`.
  void begin(JobId next_id);
  /// An event at the present moment: machines, nodes, drains.
  void tell(const engine::Event& event);
  /// A job that will be submitted at this time, not before the present one, and runs so long.
  void submit(const JobSpec& spec, std::chrono::milliseconds at, std::chrono::milliseconds work);

  /// Until nothing will ever happen any more. `watch` is called now and then with the events so
  /// far.
  void run(const std::function<void(std::size_t)>& watch);

  [[nodiscard]] const engine::State& state() const { return state_; }
  /// By submission. Jobs that never started say why.
  [[nodiscard]] std::vector<Life> lives() const;
  [[nodiscard]] const std::vector<Moment>& moments() const { return moments_; }
  [[nodiscard]] std::chrono::milliseconds now() const;
  [[nodiscard]] Now clock() const { return now_; }  ///< the same on the clocks of its engine

 private:
  using Span = std::chrono::milliseconds;
  struct Submission {
    JobSpec spec;
    std::size_t life = 0;
  };
  /// An attempt under way.
  struct Run {
    int attempt = 0;
    MonoTime since;          ///< when it began, or went on
    Span overhead{0};        ///< of what is still to come, time that is no work
    Span left{0};            ///< work and overhead still to come
    bool suspended = false;  ///< suspended
    Span ran{0};             ///< before `since`, in this attempt
    std::uint64_t end = 0;   ///< its planned end; others are out of date
  };
  struct Planned {
    MonoTime at;
    int rank = 0;  ///< at one time: ends, then submissions
    std::uint64_t number = 0;
    JobId job{};
    std::size_t submission = 0;
    std::optional<engine::event::AttemptEnded> ended{};

    friend bool operator>(const Planned& a, const Planned& b) {
      return std::tie(a.at, a.rank, a.number) > std::tie(b.at, b.rank, b.number);
    }
  };

  void take(const engine::Effect& effect, std::optional<std::size_t> submission);
  void take_answer(const engine::effect::Answer& answer, std::size_t submission);
  void step(const engine::Event& event, std::optional<std::size_t> submission = {});
  void name(JobId job, std::size_t life);
  void launch(JobId job, int attempt);
  void stop(JobId job, int attempt);
  void stand(JobId job, int attempt);
  void go_on(JobId job, int attempt);
  void plan_end(JobId job, Run& run);
  void halt(Life& life, Run& run);
  void end(const engine::event::AttemptEnded& event);
  void happen(const Planned& planned);
  [[nodiscard]] bool next();
  void use(std::int64_t parts);
  void note_moment();
  [[nodiscard]] Life& life_of(JobId job) { return lives_[life_by_job_.at(job)]; }

  engine::State state_;
  RunnerRules rules_;
  Now begins_;
  Now now_;
  std::vector<Life> lives_;
  std::map<JobId, std::size_t> life_by_job_;
  std::map<JobId, Run> runs_;
  std::vector<Submission> submissions_;
  std::priority_queue<Planned, std::vector<Planned>, std::greater<>> planned_;
  std::vector<engine::Event> at_once_;  ///< reports of the runner at the present moment
  std::optional<MonoTime> wake_;
  std::vector<Moment> moments_;
  std::int64_t parts_used_ = 0;
  std::uint64_t number_ = 0;
  int idle_ticks_ = 0;
};

}  // namespace gflow::lab
