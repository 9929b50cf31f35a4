// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "engine/backfill.h"
#include "engine/effect.h"
#include "engine/gathering.h"
#include "engine/index.h"
#include "engine/preemption_plan.h"

/// Inside of the engine: one call of step(). Not for other modules.
namespace gflow::engine {

class Candidates;
struct Candidate;

/// The job if this very attempt of it is under way; reports about others are late and mean nothing.
[[nodiscard]] const Job* under_way(const Index& index, JobId id, int attempt);

/// Takes one event to its effects. The parts live in submit.cpp, requests.cpp, update.cpp,
/// apply_defrag.cpp, attempts.cpp, health.cpp, schedule.cpp, schedule_gang.cpp, preempt.cpp,
/// lending.cpp, slices.cpp and step.cpp.
class Step {
 public:
  Step(Index& index, Now now);

  void take(const event::Submit& event);
  void take(const event::Withdraw& event);
  void take(const event::Cancel& event);
  void take(const event::Signal& event);
  void take(const event::Hold& event);
  void take(const event::Release& event);
  void take(const event::Suspend& event);
  void take(const event::Resume& event);
  void take(const event::Move& event);
  void take(const event::Update& event);
  void take(const event::ApplyDefrag& event);
  void take(const event::MakeRoom& event);
  void take(const event::AttemptStarted& event);
  void take(const event::AttemptEnded& event);
  void take(const event::AttemptRevoked& event);
  void take(const event::NodesChanged& event);
  void take(const event::NodeUnreachable& event);
  void take(const event::NodeRemoved& event);
  void take(const event::StopBegun& event);
  void take(const event::StopRefused& event);
  void take(const event::ParkingChanged& event);
  void take(const event::MoveEnded& event);
  void take(const event::GpuWanted& event);
  void take(const event::SliceChanged& event);
  void take(const event::Drain& event);
  void take(const event::Tick& event);
  void take(const event::Configure& event);

  /// What follows from any event: start what can start, forget what is old, say when to wake.
  [[nodiscard]] std::vector<Effect> finish();

 private:
  // step.cpp
  void pass_time(Now now);
  void saved(JobId id, Happening what);  ///< Save and Notify
  void answer(Result<std::vector<JobId>> jobs);
  void prune();
  void wake();
  void tell_overuse(const Machine& machine);
  void tell(bool Attempt::* told, effect::Overuse overuse);
  void note_stop(JobId id, const Stop& stop);
  void stop(JobId id, const Stop& stop);
  void end(JobId id, Status status, const Outcome& outcome);
  void settle_dependents(JobId ended);
  [[nodiscard]] bool is_hopeless(const Job& job) const;
  [[nodiscard]] Outcome hopeless_outcome(const Job& job) const;
  void to_queue(JobId id, Queued queued);
  [[nodiscard]] Result<const Job*> changeable(JobId id, const Principal& by) const;
  // submit.cpp
  void add(JobRange run);
  // update.cpp
  [[nodiscard]] Result<JobSpec> updated(const Job& job,
                                        const JobChanges& changes,
                                        const Principal& by);
  void update(JobId id, JobSpec spec, const JobChanges& changes);
  void limit_group(const Job& job, int limit);
  [[nodiscard]] Result<void> check_cycle(const std::vector<JobId>& jobs,
                                         const Dependencies& dependencies) const;
  [[nodiscard]] Result<void> check_new_edges(const std::vector<JobId>& jobs,
                                             const Dependencies& wants,
                                             const Principal& by) const;
  // apply_defrag.cpp
  [[nodiscard]] Result<int> check_defrag(const event::ApplyDefrag& event) const;
  void raise_priority(JobId id, int priority);
  // attempts.cpp
  void decide_end(const Job& job, Outcome outcome);
  void makes_no_room(JobId victim);
  template <typename Count>
  void run_again(JobId id, const Outcome& outcome, Count count);
  void start_again(const Job& job, const Outcome& outcome);
  void queue_again(const Job& job,
                   const Outcome& outcome,
                   std::optional<std::chrono::milliseconds> not_before = std::nullopt);
  // health.cpp
  void retry_nodes();
  void put_health(const std::string& node);
  void try_node(JobId id, const std::string& node);
  void judge_node(const Job& job, const Outcome* outcome);
  void node_is_well(const std::string& node);
  void try_again_now(JobId id);
  [[nodiscard]] bool try_failed_again();
  // schedule.cpp
  void schedule();
  void look_at_queue();
  [[nodiscard]] bool look_through_queue();
  void keep_out(const Candidate& first, Candidates& candidates);
  void look_at(const Candidate& first, Candidates& candidates, Places& places);
  void tell_blocked(const Candidate& first, Places& places);
  [[nodiscard]] std::optional<Chosen> room_for(const Candidate& first,
                                               placement::DemandIndex demand,
                                               Places& places);
  [[nodiscard]] bool pass(Places& places,
                          const Passer& passer,
                          Chosen& there,
                          Area among = nullptr);
  void start_first(const Candidate& first, const Chosen& there, Candidates& candidates);
  void start(JobId id, const Chosen& there);
  // schedule_gang.cpp
  /// A job of a gang that has its room.
  struct Start {
    JobId job;
    placement::DemandIndex demand = 0;
    Chosen there;
  };
  class GangTrial;
  void look_at_gang(const Candidate& first,
                    GangNumber gang,
                    Candidates& candidates,
                    Places& places);
  [[nodiscard]] bool has_as_much(const Gang& gang) const;
  [[nodiscard]] std::vector<Start> starts_of_gang(Gang& gang, Places& places, bool& is_full);
  [[nodiscard]] std::vector<Start> starts_near(Gang& gang, Places& places, bool& is_full);
  void prefer_near(const Gang& gang,
                   Places::Kept before,
                   Places& places,
                   std::vector<Start>& starts);
  [[nodiscard]] bool start_near(const Candidate& first,
                                const Passer& passer,
                                Candidates& candidates,
                                Places& places);
  // preempt.cpp
  [[nodiscard]] bool might_preempt();
  [[nodiscard]] bool preempt_for(JobId id, Places& places);
  /// Victims that were told to stop, and those that are suspended and being parked.
  struct Told {
    std::vector<JobId> stopping;
    std::vector<JobId> parking;
  };
  [[nodiscard]] Told tell_victims(const PreemptionPlan& plan, JobId by);
  /// Until the last of these is gone, at the latest.
  [[nodiscard]] std::chrono::seconds longest_to_leave(const std::vector<JobId>& jobs) const;
  void note_told(JobId id, std::size_t victims);
  void remember_preemption(JobId id, const std::vector<JobId>& victims, bool told_now);
  void forget_preemption(JobId id);
  void preempt(JobId victim, JobId by);
  void suspend(JobId id, const std::string& by_hand_of);
  [[nodiscard]] std::vector<JobId> suspended_in_order() const;
  void resume_before(const std::optional<QueueKey>& place,
                     std::vector<JobId>& suspended,
                     Places& places);
  void resume(JobId id, Places& places);
  // moving.cpp
  void decide_move(Places& places);
  // slices.cpp
  void note_slices(const Machine& machine);
  void refuse_slice(const MadeSlice& slice, const std::string& why);
  void settle_for_whom(SliceRecord& one);
  void settle_what_is_due(SliceRecord& one);
  void settle_slices();
  [[nodiscard]] bool cut_slices();
  void order_slices();
  // lending.cpp
  void lend(JobId id);
  void note_lent(const Job& job, const ParkedMemory& parked);
  void reclaim(JobId owner);

  Index& index_;
  std::vector<Effect> effects_;
  std::set<JobId> waits_changed_;    ///< pending jobs one of whose dependencies ended
  std::uint64_t starts_ = 0;         ///< so far
  std::uint64_t resumes_ = 0;        ///< so far
  bool health_changed_ = false;      ///< of any node
  bool slices_changed_ = false;      ///< what is stored of them
  bool time_decides_ = false;        ///< a gate of a job opened by itself
  bool decides_ = true;              ///< what happened can change what is decided
  std::optional<event::Move> move_;  ///< asked for, and decided behind all that waits
  std::optional<PreemptionCandidates> candidates_;  ///< once a job that does not fit asked for room
};

}  // namespace gflow::engine
