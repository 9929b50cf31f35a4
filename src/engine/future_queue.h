// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/waiting.h"

/// Inside of the engine: the queue as it should become while those who run end. Not for other
/// modules.
namespace gflow::engine {

/// A job that stands in the queue, or comes to it later.
struct FutureJob {
  JobId id;
  QueueKey key;
  std::size_t line = 0;                ///< FutureQueue::line_at()
  std::optional<std::size_t> group{};  ///< of those with a limit
  std::chrono::seconds run_time{0};    ///< by what is known now
  MonoTime keeps_from{};               ///< see Waiting
  bool needs_more = false;             ///< the same
  bool comes_later = false;            ///< it does not stand in the queue yet
  bool has_begin = false;              ///< `gate` is when it asked to begin
  std::size_t awaits = 0;              ///< so many ends of others
  MonoTime gate = MonoTime::min();     ///< it waits for that time
  std::optional<MonoTime> ready{};     ///< since when it waits for no time and no job
  std::optional<MonoTime> start{};
};

/// What of a job tells how long it runs, and for whom it counts.
struct FutureOwner {
  std::uint32_t uid = 0;
  std::int64_t parts = 0;  ///< of GPUs, in all
  MeanRuns::Alike alike{};
  std::optional<std::size_t> group{};
};

/// Jobs of a kind, first in, first out.
struct FutureLine {
  Shape shape;
  std::size_t shape_number = 0;   ///< the same for all of one shape
  std::size_t demand_number = 0;  ///< the same for all of one demand
  int priority = kDefaultPriority;
  Contender contender;
  FutureOwner owner;
  std::chrono::seconds allowance{0};
  std::chrono::seconds run_time{0};         ///< expected, as more and more is learned
  std::optional<std::int64_t> gpu_limit{};  ///< parts its user may hold
  std::map<QueueKey, FutureJob*> jobs;      ///< those in the queue

  [[nodiscard]] FutureJob& first() const { return *jobs.begin()->second; }
};

/// Who waits, who comes to the queue when others have ended or a time has come, and who goes first
/// as time goes on: by what is learned of those that end until then, and by what users have by
/// then. Takes who ends to finish well. Changes nothing of the index but which demands the ledger
/// knows, for as long as it lives.
///
/// Usage: gather() once, then owner_of() each active job; then settle(), first(), start_first(),
/// drop_line() for a pass; ended(), open_gates() for what happens between them.
class FutureQueue {
 public:
  explicit FutureQueue(Index& index);
  ~FutureQueue();
  FutureQueue(const FutureQueue&) = delete;
  FutureQueue& operator=(const FutureQueue&) = delete;

  /// At most so many jobs: the first that stand in the queue, and others that come to it; besides
  /// them one that nobody submitted yet, unless it would stand behind them.
  void gather(std::size_t most, const Job* asked = nullptr);
  [[nodiscard]] FutureOwner owner_of(const Job& active, const Signature& signature);
  [[nodiscard]] const FutureJob* find(JobId id) const;

  /// In the order of the queue now, and those that come later as they were found.
  [[nodiscard]] const std::deque<FutureJob>& jobs() const { return jobs_; }
  [[nodiscard]] std::size_t lines() const { return lines_.size(); }
  [[nodiscard]] const FutureLine& line_at(std::size_t number) const { return lines_[number]; }
  [[nodiscard]] std::size_t shapes() const { return shapes_.size(); }
  [[nodiscard]] std::size_t demands() const { return asked_.size(); }
  [[nodiscard]] std::int64_t held(std::uint32_t uid) const { return fair_.held(uid); }
  [[nodiscard]] std::chrono::seconds waited(const FutureJob& job, MonoTime now) const;

  /// Begins a pass at that time.
  void settle(MonoTime now);
  /// The lines of this pass: the first of the queue is the first job of the first.
  [[nodiscard]] bool is_over() const { return heap_.empty(); }
  [[nodiscard]] const FutureLine& first();
  void drop_line();
  /// The first job of the first line starts.
  void start_first();

  /// What was given back is given out: as FairShare::forget_released().
  void forget_released() { fair_.forget_released(); }

  /// A job ends that had run for so long.
  void ended(JobId id, const FutureOwner& owner, std::chrono::milliseconds ran, MonoTime now);
  [[nodiscard]] std::optional<MonoTime> next_gate() const;
  void open_gates(MonoTime now);

 private:
  struct Group {
    int room = 0;  ///< how many more may run or stand in the queue
    std::map<QueueKey, FutureJob*> queued;
    std::map<QueueKey, FutureJob*> parked;
  };
  struct Candidate {
    QueueKey place;
    std::size_t line = 0;

    /// So that a heap gives the first in the queue.
    friend bool operator<(const Candidate& a, const Candidate& b) { return b.place < a.place; }
  };
  struct Over {
    std::chrono::milliseconds lived;
    MeanRuns::Alike alike;
    std::chrono::seconds took;
  };

  void add(FutureJob job);
  void add(const Waiting& waiting);
  void add_asked(const Job& job);
  void add_parked(std::size_t most);
  void add_timed(std::size_t most);
  void add_dependents();
  /// False if it never comes, as far as is known.
  bool add_later(JobId id);
  [[nodiscard]] FutureJob future_of(const Job& job);
  [[nodiscard]] bool is_parked(const Job& job, const QueueKey& key) const;
  [[nodiscard]] std::optional<std::size_t> ends_awaited(const Job& job);
  [[nodiscard]] std::size_t line_of(const Job& job);
  [[nodiscard]] std::size_t line_of(Line& line, const Shape& shape, int priority);
  [[nodiscard]] std::size_t add_line(const Shape& shape, int priority, const Contender& contender);
  [[nodiscard]] std::optional<std::size_t> group_of(const JobSpec& spec);
  void count_users();
  void remember_untaught();
  void learn(std::chrono::milliseconds lived);
  void expect(FutureLine& line);
  void make_ready(FutureJob& job, MonoTime at);
  void queue(FutureJob& job);
  void unqueue(FutureJob& job);
  void balance(Group& group);
  [[nodiscard]] QueueKey place_of(const FutureLine& line) const;
  void compare_again();

  Index& index_;
  placement::DemandIndex demands_;  ///< before this
  std::size_t most_ = 0;
  OrderRules rules_;
  FairShare fair_;
  MeanRuns runs_;
  std::chrono::milliseconds learned_until_;
  std::deque<Over> over_;
  std::deque<FutureJob> jobs_;
  std::map<JobId, FutureJob*> by_id_;
  std::vector<FutureLine> lines_;
  std::map<const Line*, std::size_t> by_line_;
  std::map<std::pair<Shape, Kind>, std::size_t> by_kind_;
  std::map<Shape, std::size_t> shapes_;
  std::map<placement::DemandIndex, std::size_t> asked_;
  std::vector<Group> groups_;
  std::map<GroupKey, std::size_t> by_group_;
  std::map<JobId, std::vector<FutureJob*>> dependents_;
  std::set<std::pair<MonoTime, JobId>> gates_;
  std::vector<Candidate> heap_;
  std::chrono::seconds clock_{0};
  std::size_t edges_ = 0;  ///< looked at
};

}  // namespace gflow::engine
