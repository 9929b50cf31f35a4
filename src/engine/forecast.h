// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "engine/future_queue.h"

/// Inside of the engine: when jobs that wait should start. Not for other modules.
namespace gflow::engine {

/// What is expected of a job that nobody submitted yet. Empty is not known.
struct QueueTurn {
  std::optional<WallTime> start;
  /// Jobs that stand in the queue before it, and those that come to it and start before. Empty,
  /// too, where there are such and its start is not known.
  std::optional<std::size_t> ahead;
};
/// Of one that would stand among the first in the queue if it were submitted; a PassingDemand of
/// its request lives meanwhile.
[[nodiscard]] QueueTurn queue_turn_of(Index& index, const Job& job, Now now);

/// What is expected of a queue: whoever runs ends when it should, whoever waits starts in the order
/// of FutureQueue where there is room and runs as long as expected now, and places are kept as
/// backfill.h tells, by when the engine will take those that run to end. Who is submitted later,
/// makes room or goes on from suspension is left out; so is which of several nodes and devices a
/// job gets, and what needs more than room. A copy of what nodes have left is changed, nothing
/// else.
///
/// Usage: run() once, then start_of(). What it costs is bounded: where it has looked often enough,
/// later starts are not known.
class Forecast {
 public:
  /// Looks at a node, and what else takes as long: some milliseconds.
  static constexpr std::size_t kMaxLooks = 20'000;

  /// REQUIRES: the queue was gathered, and nothing has happened to it.
  Forecast(Index& index, FutureQueue& queue);
  void run();

  struct Start {
    MonoTime at;
    StartKnown known = StartKnown::ByRunTimes;
  };
  /// Nothing where that is not known, or it could start now: something else keeps it waiting.
  [[nodiscard]] std::optional<Start> start_of(const FutureJob& job) const;

 private:
  using Room = std::vector<placement::Placement>;
  /// A job that runs, or that has started here.
  struct Runner {
    JobId id;
    MonoTime end;                      ///< when it is gone; the horizon, if nobody knows
    MonoTime reckoned;                 ///< when the engine takes it to be gone
    bool is_promised = false;          ///< that is by its limit
    std::chrono::milliseconds ran{0};  ///< until it ends
    placement::DemandIndex demand = 0;
    placement::Presence presence = placement::Presence::Working;
    Room there{};
    FutureOwner owner{};
  };
  using Due = std::pair<MonoTime, JobId>;
  /// Who keeps its place: when it will fit, and what those nodes have left then.
  struct Head {
    MonoTime start;
    placement::DemandIndex demand = 0;
    int priority = kDefaultPriority;
    std::uint32_t uid = 0;
    std::int64_t parts = 0;
    bool against_all = false;  ///< else only against lower priorities
    bool is_proven = true;
    std::chrono::seconds waited{0};
    std::map<placement::NodeIndex, placement::NodeState> nodes{};
  };

  void add_running(Index& index);
  void add(Runner runner);
  [[nodiscard]] bool may_look() const { return looks_ < kMaxLooks; }
  [[nodiscard]] bool fits(placement::DemandIndex demand,
                          placement::NodeIndex node,
                          const placement::NodeState& state);
  [[nodiscard]] bool is_over_limit(const FutureLine& line) const;
  [[nodiscard]] bool is_full(const FutureLine& line) const;
  [[nodiscard]] Room room_for(placement::DemandIndex demand,
                              const std::set<placement::NodeIndex>& left_out);
  [[nodiscard]] std::optional<Head> head_of(const FutureLine& line,
                                            const FutureJob& job,
                                            const std::set<placement::NodeIndex>& taken);
  [[nodiscard]] std::set<placement::NodeIndex> nodes_of_heads(bool all) const;
  void block(const FutureLine& line);
  [[nodiscard]] bool keep_against_all(const FutureLine& line);
  void keep_outranking(int priority);
  [[nodiscard]] bool is_concerned(const Head& head, const FutureLine& line) const;
  [[nodiscard]] bool let_pass(const FutureLine& line, const Room& there);
  void start(const FutureLine& line, Room there);
  void look_at(const FutureLine& line);
  /// True if somebody did.
  bool start_who_can();
  void leave_out(const FutureLine& line);
  void set_full(const FutureLine& line);
  void count_lines();
  void open_where_room(placement::NodeIndex node);
  void end(const Runner& runner);
  [[nodiscard]] bool pass_time();

  Index& index_;
  const placement::Ledger& ledger_;
  FutureQueue& queue_;
  std::vector<placement::NodeState> nodes_;
  std::map<JobId, Runner> runners_;
  std::set<Due> ends_;                             ///< of those that are known to end
  std::set<Due> reckoned_;                         ///< of all
  std::vector<std::uint8_t> full_;                 ///< by number of a demand: there is no room
  std::vector<int> in_pass_;                       ///< the same: lines of this pass
  std::vector<placement::DemandIndex> demand_of_;  ///< the same: which it is, if there are any
  int open_ = 0;                                   ///< lines of this pass that may have room
  std::set<placement::NodeIndex> changed_;         ///< where something was given back
  std::vector<std::size_t> told_;  ///< by shape: the last pass in which one did not fit
  std::vector<Head> heads_;        ///< of this pass
  std::vector<std::pair<const FutureLine*, FutureJob*>>
      blocked_;  ///< whose places may be kept against lower priorities
  int against_all_ = 0;
  int tried_ = 0;
  std::size_t passes_ = 0;
  MonoTime begin_;
  MonoTime now_;
  MonoTime horizon_;  ///< nothing is known of what is later
  std::size_t looks_ = 0;
};

}  // namespace gflow::engine
