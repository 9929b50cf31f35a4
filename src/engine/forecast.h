// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: when jobs that wait should start. Not for other modules.
namespace gflow::engine {

/// A job that may start as soon as there is room.
struct Waiting {
  JobId job;
  Shape shape;
  std::chrono::seconds run_time{0};  ///< expected; years if nothing is known of it
  std::uint32_t uid = 0;
  std::int64_t parts = 0;  ///< of GPUs, in all
  int priority = kDefaultPriority;
  MonoTime keeps_from{};    ///< from then on its place is kept also against its priority
  bool needs_more = false;  ///< than room: a gang, or a limit of jobs that hold nothing
  std::optional<MonoTime> start{};

  friend bool operator==(const Waiting&, const Waiting&) = default;
};

/// The first of those jobs, at most so many, in the order in which they are considered.
[[nodiscard]] std::vector<Waiting> first_waiting(Index& index, std::size_t most);

/// When a job that nobody submitted yet should start if it were, of those that would stand among
/// the first in the queue; a PassingDemand of its request lives meanwhile.
[[nodiscard]] std::optional<WallTime> forecast_of(Index& index, const Job& job, Now now);

/// What is expected of a queue: whoever runs ends when it should, whoever waits starts in order
/// where there is room and runs as long as expected, and places are kept as backfill.h tells. Who
/// comes later, makes room, goes on from suspension or stands further back when others of its user
/// start, is left out; so is where exactly a job goes. A copy of what nodes have left is changed,
/// nothing else.
///
/// Usage: run() once. What it costs is bounded: where it has looked often enough, later starts are
/// not known.
class Forecast {
 public:
  Forecast(Index& index, std::vector<Waiting>& waiting);
  /// Fills in the starts that are known, but for those that could be now: something else keeps
  /// these waiting.
  void run();

 private:
  using Room = std::vector<placement::Placement>;
  /// A job that runs, or that has started here, by when it is gone.
  struct Leaver {
    MonoTime end;
    placement::DemandIndex demand = 0;
    placement::Placement there;
    placement::Presence presence = placement::Presence::Working;
    std::uint32_t uid = 0;
    std::int64_t parts = 0;  ///< on this node

    friend bool operator<(const Leaver& a, const Leaver& b) { return a.end < b.end; }
  };
  /// Who keeps its place: when it will fit, and what those nodes have left then.
  struct Head {
    MonoTime start;
    placement::DemandIndex demand = 0;
    int priority = kDefaultPriority;
    bool against_all = false;  ///< else only against lower priorities
    std::map<placement::NodeIndex, placement::NodeState> nodes{};
  };

  void add_leavers(Index& index);
  [[nodiscard]] bool may_look() { return looks_ < kMaxLooks; }
  [[nodiscard]] bool fits(placement::DemandIndex demand,
                          placement::NodeIndex node,
                          const placement::NodeState& state);
  [[nodiscard]] bool is_over_limit(const Waiting& job) const;
  [[nodiscard]] Room room_for(placement::DemandIndex demand);
  [[nodiscard]] std::optional<Head> head_of(const Waiting& job,
                                            const std::set<placement::NodeIndex>& taken);
  void block(const Waiting& job);
  void keep_outranking(int priority);
  [[nodiscard]] bool let_pass(const Waiting& job, const Room& there);
  void start(Waiting& job, Room there);
  void start_who_can();
  [[nodiscard]] bool end_next();

  /// Looks at a node: some milliseconds.
  static constexpr std::size_t kMaxLooks = 20'000;

  const placement::Ledger& ledger_;
  std::vector<Waiting>& waiting_;
  std::vector<Waiting*> left_;                ///< those that have not started
  std::set<placement::DemandIndex> demands_;  ///< of those that wait
  std::vector<placement::NodeState> nodes_;
  std::multiset<Leaver> leavers_;
  std::map<std::uint32_t, std::int64_t> limits_left_;  ///< parts that users may hold more
  std::vector<Head> heads_;                            ///< of this pass
  std::vector<const Waiting*> blocked_;  ///< whose places may be kept against lower priorities
  std::size_t max_against_all_;
  MonoTime now_;
  MonoTime horizon_;  ///< nothing is known of what is later
  std::size_t looks_ = 0;
};

}  // namespace gflow::engine
