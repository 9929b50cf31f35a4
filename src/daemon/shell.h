// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/types.h"
#include "base/translate.h"
#include "core/job_event.h"
#include "core/task_payload.h"
#include "daemon/dispatcher.h"
#include "engine/state.h"
#include "engine/step.h"
#include "server/submission.h"
#include "store/store.h"

namespace gflow::daemon {

/// The imperative shell round the engine: collects what happened, and once a tick decides, commits,
/// acts and answers, in this order; what is to be launched follows bit by bit. Knows no sockets, no
/// clock and no threads; one thread owns it.
class Shell {
 public:
  using Answer = std::function<void(Result<std::vector<JobId>>)>;
  using Check = std::function<Result<void>()>;

  /// What one tick left behind.
  struct Ticked {
    std::set<JobId> changed;  ///< jobs people may want to look at again
    std::vector<std::shared_ptr<const JobRange>> added{};  ///< new ones alike; not in `changed`
    std::optional<MonoTime> wake_mono;
    std::optional<WallTime> wake_wall;
    std::vector<engine::effect::Overuse> overuses;  ///< to be said in the log
    JobEvents events{};                             ///< what happened, as it was committed
    bool told_of_nodes = false;                     ///< how one stands may be another now
  };

  /// Borrows all three for its lifetime. `ballast` may be null.
  Shell(engine::State& state, store::Store& store, Dispatcher& dispatcher, store::Ballast* ballast);
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  /// To be called once, before the first tick, with what the store held: finds out how the attempts
  /// under way stand and queues what became of them. Returns those attempts.
  std::vector<std::pair<JobId, int>> take_over();

  /// How an attempt stands of which take_over() could not find it out.
  void adopted(JobId job, int attempt, const executor::Adoption& found);

  /// Queues an event for the next tick; the answer is called in it, after the commit. Where a check
  /// is given it is asked right before: what it fails with is the answer, and nothing is decided.
  void post(engine::Event event, Answer answer = {}, Check check = {});
  /// Queues a submission; the specs have their owner. One that was submitted before under its key
  /// is answered with the jobs it got then; another one under that key is refused.
  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              server::SubmitIf condition = {});
  [[nodiscard]] bool idle() const { return posted_.empty(); }

  /// Takes what was posted, in its order, until `is_enough` says so; the rest is for the next tick.
  /// An error is final: nothing more may be acknowledged, the process has to end, and what the
  /// store holds is the truth. A full disk is none: submissions that do not fit are refused, each
  /// by itself; what else was decided waits to be written, and is tried again with every tick;
  /// until then jobs are only told to stop, and nothing new is taken but cancelling.
  [[nodiscard]] Result<Ticked> tick(Now now, const std::function<bool()>& is_enough = {});
  [[nodiscard]] bool disk_is_full() const { return unwritten_ != nullptr; }
  /// What was called upon is to be set aside again, which every tick tries: until then no
  /// submission is taken.
  [[nodiscard]] bool wants_room() const;
  /// Why nothing new is taken, and who fills the disk, for people who are shown others' jobs so
  /// far.
  [[nodiscard]] std::string disk_text(OthersJobs shown) const;
  /// What users are shown of them in answers from now on.
  void show_of_others(OthersJobs what) { others_jobs_ = what; }

  /// Launches are committed with the tick that decided them and carried out one at a time, between
  /// which others are answered.
  [[nodiscard]] bool has_launches() const { return !launches_.empty(); }
  void launch_next();

 private:
  struct Posted {
    engine::Event event;
    Answer answer;
    Check check;
    std::function<Result<void>(JobId)> after;  ///< of a submission: SubmitIf::after
    std::vector<TaskPayload> payloads;         ///< of a submission, of each entry
    std::string key;                           ///< of a submission
    std::string digest;                        ///< of what was submitted
    std::uint32_t uid = 0;
    /// What a refusal is said in; nothing that is kept.
    const MessageCatalogue* messages = messages_in_use();
  };
  /// What the events of one tick add up to.
  struct Plan;
  /// Jobs of one submission that is not written yet.
  struct Unwritten {
    std::vector<JobId> jobs;
    std::size_t bytes = 0;
    std::uint32_t uid = 0;
    std::string key;
    std::vector<std::size_t> replies;  ///< places in Plan::replies of those who submitted it
  };

  void take_over(const Job& job, const executor::Adoption& found);
  void say_again(const Job& job, const executor::StillRuns& runs);
  void say_moves();
  void decide(Posted& posted, Now now, Plan& plan);
  [[nodiscard]] static Result<void> taken_after(const Posted& posted,
                                                const std::vector<engine::Effect>& effects);
  void take_back(
      std::vector<engine::Effect> effects, const Error& why, Posted& posted, Plan& plan, Now now);
  void take(const engine::Effect& effect, Posted& posted, Plan& plan);
  [[nodiscard]] std::optional<Result<std::vector<JobId>>> answered_before(const Posted& posted,
                                                                          Now now,
                                                                          const Plan& plan);
  [[nodiscard]] Result<std::optional<store::Submission>> submitted_before(const Posted& posted,
                                                                          Now now,
                                                                          const Plan& plan);
  [[nodiscard]] Result<void> check_keys(const Posted& posted, Now now, const Plan& plan);
  [[nodiscard]] Result<void> write(Plan& plan, Now now);
  void withdraw_largest(Plan& plan, Now now);
  static void drop_from(Plan& plan, const std::vector<JobId>& jobs);
  [[nodiscard]] static std::vector<JobRange> ranges_to_save(const Plan& plan);
  void note_submission(Posted& posted, const std::vector<JobId>& ids, Plan& plan) const;
  [[nodiscard]] Result<void> commit(Plan& plan, Now now);
  void make_room();
  void regain_room();
  void shrink_store();
  [[nodiscard]] bool is_short_of_disk() const;
  [[nodiscard]] static bool is_taken_when_full(const engine::Event& event);
  Ticked put_off(std::unique_ptr<Plan> plan, Now now);
  [[nodiscard]] const Job* in_attempt(JobId id, int attempt) const;
  void act(const engine::Effect& effect);
  std::shared_ptr<const LaunchOrder> take_launch(JobId job, int attempt);
  void launch(const LaunchOrder& order);
  void stop(JobId job, int attempt);
  void act(const Plan& plan);

  engine::State& state_;
  store::Store& store_;
  Dispatcher& dispatcher_;
  store::Ballast* ballast_;
  OthersJobs others_jobs_ = OthersJobs::All;
  std::deque<Posted> posted_;
  /// Attempts that were taken over while they moved, and of which that is still to be said.
  std::vector<std::pair<JobId, int>> moves_;
  std::unique_ptr<Plan> unwritten_;  ///< decided, but the disk is full
  /// Committed, not carried out yet. Shared with the effects that ordered them.
  std::deque<std::shared_ptr<const LaunchOrder>> launches_;
};

}  // namespace gflow::daemon
