// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/blocker.h"
#include "core/defrag_plan.h"
#include "core/job.h"
#include "core/job_query.h"
#include "core/machine.h"
#include "engine/effect.h"
#include "engine/event.h"
#include "engine/gang.h"
#include "engine/glance.h"
#include "engine/health.h"
#include "engine/peaks.h"
#include "placement/placer.h"

namespace gflow::engine {

struct Index;

/// What a machine has and what of it is held, as the engine counts.
struct Totals {
  int gpus = 0;       ///< devices that can ever be given out
  int gpus_free = 0;  ///< neither held by a job nor used by anyone else
  int cpus = 0;
  int cpus_free = 0;
  Memory memory;
  Memory memory_free;

  friend bool operator==(const Totals&, const Totals&) = default;
};

/// What would become of a job that is not submitted yet.
struct Preview {
  std::vector<Blocker> blockers;  ///< what keeps it waiting whatever is free, then what it lacks
  bool cancelled = false;         ///< at once: what it depends on has ended otherwise
  /// Of one that waits for room alone or, where there is room, for those ahead of it:
  std::optional<WallTime> start;     ///< expected; now: it passes those that wait
  std::optional<std::size_t> ahead;  ///< jobs that go before it
};

/// Where each of several jobs alike that are not submitted yet would start.
struct Starts {
  std::vector<std::vector<placement::Placement>> jobs;  ///< of each, one for each of its nodes
  /// What keeps the next one waiting though there is room for it: a limit of jobs at once.
  std::optional<Blocker> limit;
};

/// What it is known by when a job should start.
enum class StartKnown {
  ByLimits,    ///< at the latest then: its place is kept against all behind it
  ByRunTimes,  ///< how long those took that are like those that run, and who should come before it
  ByBegin,     ///< it was asked for, and there should be room then
  NotBefore,   ///< what else keeps it waiting then is not known
};

/// When a job that waits should start.
struct ExpectedStart {
  WallTime at;
  StartKnown known = StartKnown::ByRunTimes;

  friend bool operator==(const ExpectedStart&, const ExpectedStart&) = default;
};

/// A job that waits, and by what is known now when it starts; nothing where that is not known.
struct Expected {
  JobId job;
  std::optional<ExpectedStart> start;

  friend bool operator==(const Expected&, const Expected&) = default;
};

/// A node the engine was told of.
struct NodeRecord {
  Machine machine;
  std::optional<std::string> unreachable{};  ///< why; empty: it answers
  std::optional<std::string> removed{};      ///< why; only until nothing is held there any more

  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

/// How many jobs wait for what.
struct PendingReasons {
  std::array<std::size_t, kBlockerKinds.size()> by_kind{};  ///< by BlockerKind
  std::size_t others = 0;  ///< in a queue of too many requests to look at each
};

class State;
[[nodiscard]] std::vector<Effect> step(State& state, const Event& event, Now now);

/// Everything the engine knows. Changed by step() only; one thread owns it. Movable, not copyable.
class State {
 public:
  /// boot_id names the boot that `Now::mono` counts in.
  State(Policy policy, std::string boot_id);
  ~State();
  State(State&&) noexcept;
  State& operator=(State&&) noexcept;

  /// The time gflow had seen pass, over all boots, at a moment of this one; before restored(). A
  /// new state has seen what the clock of this boot says.
  void set_lived(std::chrono::milliseconds lived, MonoTime at);
  [[nodiscard]] std::chrono::milliseconds lived(MonoTime at) const;
  /// When the last one ended of the ended jobs that were forgotten: of those that ended later each
  /// is here. Empty: none was.
  [[nodiscard]] std::optional<WallTime> forgotten() const;
  void set_forgotten(std::optional<WallTime> ended);  ///< as the store has it; before restored()
  /// Takes a job read from the store. All jobs, then restored() once, before the first step.
  /// An attempt of another boot keeps its state; the shell reports how it ended.
  void restore(Job&& job);
  /// Whether nobody has to make room for this job, which may be the next that is submitted. Kept as
  /// long as the job is, and by no store.
  void spare(JobId id, bool is_sparing);
  /// Makes a gang, or changes how many of its jobs have to be active: as long as fewer are, those
  /// that wait start only so many at once that they are, and as near each other as is said. Kept as
  /// long as one of its jobs is, and by no store.
  void put_gang(GangNumber gang, std::size_t least, Nearness near = {});
  /// This job is of the gang, which has jobs of one user: one that is to be restored, or the next
  /// that is submitted. Nobody is stopped to make room for a gang. REQUIRES: put_gang().
  void join_gang(JobId id, GangNumber gang);
  void leave_gang(JobId id);  ///< one that was not submitted after all
  /// As long as it is held, none of its jobs starts that does not run. REQUIRES: it has jobs.
  void hold_gang(GangNumber gang, bool is_held);
  /// Something that is not counted here keeps the gang from the domain in which it was to start
  /// last: it is not tried again before all others were. False: it was to start anywhere. REQUIRES:
  /// it has jobs, none of which holds anything.
  [[nodiscard]] bool avoid_last_domain(GangNumber gang);
  /// It has started. REQUIRES: it has jobs.
  void avoid_no_domain(GangNumber gang);
  /// The gang of a job; nothing if it is in none.
  [[nodiscard]] std::optional<GangView> gang_of(JobId id) const;
  void restore(JobRange&& range);  ///< the same of jobs that wait
  /// next_id: the smallest id never given out, at least one more than every restored job's.
  void restored(JobId next_id);
  /// Takes nodes as they are, after restored(), and decides nothing, now nor later: for who shows
  /// what another decides. `revision`: what revision() says of it.
  void show(std::vector<NodeRecord> nodes, Now now, std::uint64_t revision);

  [[nodiscard]] const std::string& boot_id() const;
  /// Good until the next step() or list_some(), as all pointers to jobs.
  [[nodiscard]] const Job* find(JobId id) const;
  [[nodiscard]] JobId next_id() const;
  /// The nodes there are, by name.
  [[nodiscard]] const std::map<std::string, NodeRecord>& nodes() const;
  [[nodiscard]] const Policy& policy() const;
  [[nodiscard]] Totals totals() const;                         ///< of all nodes
  [[nodiscard]] Totals totals(const std::string& node) const;  ///< of one
  /// Nodes, and what is held there.
  [[nodiscard]] const placement::Ledger& ledger() const;
  [[nodiscard]] std::size_t count(Status status) const;
  [[nodiscard]] std::size_t count(StatusSet statuses) const;
  /// Changes with every job or machine change; for those who wait for news.
  [[nodiscard]] std::uint64_t revision() const;

  /// Jobs that match, by id: ascending, or descending where newest_first(). Other keys of an order
  /// are for whoever asks to sort by.
  [[nodiscard]] std::vector<const Job*> list(const JobQuery& query) const;
  /// The same by pieces: looks at no more than `max_seen` jobs. Pointers of an earlier piece are
  /// good no more.
  struct Listed {
    std::vector<const Job*> jobs;
    std::optional<JobId> more_after;  ///< where to go on; empty: these were all
  };
  [[nodiscard]] Listed list_some(const JobQuery& query, std::size_t max_seen) const;
  /// Shows them instead, as cheaply as can be. Returns where to go on, or nothing: these were all.
  std::optional<JobId> glance_some(const JobQuery& query,
                                   std::size_t max_seen,
                                   const std::function<void(const Glance&)>& show) const;
  /// A place in the order by priority: behind this job, whether it is there or not.
  struct PriorityPlace {
    int priority = 0;
    JobId id;
  };
  /// The same in the order by priority that the query asks for, from a place on or from its begin;
  /// `query.after` means nothing. As fast as the first of them that match are found.
  std::optional<PriorityPlace> glance_by_priority(
      const JobQuery& query,
      const std::optional<PriorityPlace>& after,
      std::size_t max_seen,
      const std::function<void(const Glance&)>& show) const;
  /// How many jobs glance_some() would look at for it, in all, and how many there are.
  [[nodiscard]] std::size_t seen_for(const JobQuery& query) const;
  [[nodiscard]] std::size_t size() const;
  /// Of the jobs that have ended, those that did so last, newest first.
  [[nodiscard]] std::vector<const Job*> last_ended(std::size_t most) const;
  /// The user's newest job (back = 0), the one before it (1), ...; empty if there are not so many.
  [[nodiscard]] std::optional<JobId> newest(std::uint32_t uid, std::uint64_t back) const;
  /// Jobs not started yet that depend on this one directly, ascending.
  [[nodiscard]] std::vector<JobId> dependents(JobId id) const;
  /// Whose jobs that have not ended hold most in texts (Policy::max_stored_per_user), and how much;
  /// empty if there are none.
  [[nodiscard]] std::optional<std::pair<std::string, Memory>> stores_most() const;
  /// Whether it waits, and its user is at a limit of what runs or what is held at once.
  [[nodiscard]] bool is_at_user_limit(JobId id) const;
  /// What jobs of the user hold of GPUs, as their limit counts it.
  [[nodiscard]] Share gpus_held(std::uint32_t uid) const;
  /// How often an edge of the dependencies was looked at so far: for tests of growth.
  [[nodiscard]] std::uint64_t dependency_visits() const;
  /// How often it was decided anew what starts: for tests of what is no news.
  [[nodiscard]] std::uint64_t passes() const;
  /// Devices and nodes an administrator took out, by node and index.
  [[nodiscard]] const std::vector<Drain>& drains() const;
  /// Takes what the store held of them; before restored().
  void restore(std::vector<Drain> drains);
  void restore(std::vector<NodeHealth> unhealthy);
  /// Slices of MIG that are gflow's: made, or being made or removed.
  [[nodiscard]] std::vector<MadeSlice> slices() const;
  /// What was not made or removed of a GPU when that was last tried, and why: "3g.40gb:
  /// Insufficient Resources"; "" if nothing was refused lately.
  [[nodiscard]] std::string refused_slice(std::string_view node, std::string_view gpu) const;
  /// As the store had them; before restored(). What was under way is ordered again.
  void restore(std::vector<MadeSlice> slices);
  /// Nodes on which launches fail.
  [[nodiscard]] std::vector<NodeHealth> unhealthy() const;
  /// What earlier runs of a user's command used of a GPU's memory, if any told.
  [[nodiscard]] std::optional<Peak> peak(std::uint32_t uid, std::string_view command) const;
  /// What an active job is seen to use of the memory of its devices, where they tell.
  [[nodiscard]] std::vector<GpuMemoryUse> gpu_memory_of(const Job& job) const;
  /// For how long no kernel was seen on any device of a running job; nothing if one was, or that is
  /// not told, or it does not have them now.
  [[nodiscard]] std::optional<std::chrono::seconds> gpu_idle(const Job& job, Now now) const;
  /// The most host memory that an active job needs for what it has of its GPUs, to be parked or to
  /// move.
  [[nodiscard]] Memory copy_of(const Job& job) const;
  /// Whether such a job, which may not be stopped, would have room on GPUs that others lend if it
  /// could be told to give them back.
  [[nodiscard]] bool could_borrow(const JobSpec& spec) const;
  /// The jobs on a device of a node, ascending; several if they share it.
  [[nodiscard]] std::vector<JobId> holders(const std::string& node, int gpu) const;

  /// Every reason a pending job does not run now, or a suspended one does not go on; empty for any
  /// other.
  [[nodiscard]] std::vector<Blocker> blockers(JobId id, Now now) const;
  /// Who goes before a pending job, of those that it would delay; empty where nobody does. Costs
  /// less than all its reasons.
  [[nodiscard]] std::optional<blocker::Priority> ahead_of(JobId id, Now now) const;
  /// The jobs that may start as soon as there is room, at most so many, in the order in which they
  /// are considered; then those that will, once others have ended or a time has come, as they
  /// should start. Their starts are estimated for who asks, as forecast.h tells, and decide
  /// nothing.
  [[nodiscard]] std::vector<Expected> forecast(std::size_t most, Now now) const;
  /// For those of them that may start as soon as there is room, in the same order: which moves of
  /// running ones would start each, as defrag.h tells. Decides nothing.
  [[nodiscard]] std::vector<DefragPlan> defrag(std::size_t most, Now now) const;
  /// Whether these moves, ascending, would start this job, or its gang, and it is the first that
  /// moves would start. Errors: WrongState, with why not.
  [[nodiscard]] Result<void> check_moves(JobId job,
                                         const std::vector<JobId>& moves,
                                         std::size_t most,
                                         Now now) const;
  /// All that wait, each counted once: under its hold, begin time, pause, dependencies or group if
  /// any of these keeps it from the queue, else under a limit of its user, else under what the
  /// nodes lack for it or those ahead of it. Costs what there are requests of, not jobs.
  [[nodiscard]] PendingReasons pending_reasons() const;
  /// What would become of such a job of its user if it were submitted on its own now. Errors: those
  /// of its submission for what it requests and depends on, by one who sees so much.
  [[nodiscard]] Result<Preview> preview(const JobSpec& spec,
                                        Now now,
                                        const JobSight& sight = {}) const;

  /// Where such a job could start now if nothing waited ahead of it: the best nodes first, at most
  /// so many, by the policy in force. Errors: as of a submission that could never start.
  [[nodiscard]] Result<std::vector<placement::Ranked>> rank(const Request& request,
                                                            std::size_t most) const;
  /// Where each of so many such jobs would start now, one after the other, if nothing waited ahead
  /// of them: as many as have room and may run at once. Errors: as of rank().
  [[nodiscard]] Result<Starts> starts(const JobSpec& spec, std::size_t jobs) const;
  /// Whether these jobs would be taken now; changes nothing. Errors: as their submission is
  /// refused.
  [[nodiscard]] Result<void> check(const event::Submit& event) const;

  /// How often room for a waiting job was looked for so far: for tests of growth.
  [[nodiscard]] std::uint64_t looks() const;
  /// Forgets for which requests there was no room: the next step looks at all of them. It decides
  /// the same as one that remembers; for tests of that.
  void look_at_all_again();

  /// Verifies every index against every other and that nothing is held twice.
  /// The first contradiction in words, or "". Walks everything: for tests and debug builds.
  [[nodiscard]] std::string check() const;

 private:
  friend std::vector<Effect> step(State& state, const Event& event, Now now);
  [[nodiscard]] Listed look_through(const JobQuery& query, std::size_t max_seen) const;
  std::unique_ptr<Index> index_;
};

}  // namespace gflow::engine
