// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/defrag_plan.h"
#include "engine/index.h"
#include "engine/waiting.h"

/// Inside of the engine: what moves of running jobs would start those that wait. Not for other
/// modules.
namespace gflow::engine {

/// Where enough is free in all, but in pieces: for each job that waits the cheapest moves after
/// which it fits. Nothing is decided: a copy of what nodes have left is changed, nothing else.
///
/// Who may be moved: a job that runs and that its owner allows to be stopped and queued again
/// (Preemption::Requeue). One that may only be suspended keeps its memory where it is, and stays.
/// A move is good if the job has room elsewhere once all that move have stopped and the one that
/// waits has started.
///
/// What it costs: the time that those who move have run, which starts anew, by their GPUs; then
/// how many they are. Of each node all sets of one and two jobs are looked at, and one larger set:
/// that which clears, device by device, what is cheapest to clear. Of equals the first wins, by
/// node and by job. A job for several nodes has those where it fits, and of the others one after
/// the other that is cheapest to clear.
///
/// Jobs of a gang that start together have one plan: each in turn goes where it fits, on the node
/// that has least left, or else where that is cheapest to clear; and all that move for them have
/// to have room once the last of them has started. Nobody of a gang that runs moves: without one
/// of its jobs the others may run for nothing. For a gang that has to be in one domain (Nearness)
/// no moves are looked for.
///
/// Plans follow each other in the order of the queue: each begins where those before it end, and
/// nobody moves twice.
///
/// Usage: run(), or would_start(), once. What it costs is bounded: where it has looked often
/// enough, nothing is known of the rest.
class Defrag {
 public:
  Defrag(Index& index, Now now);
  [[nodiscard]] std::vector<DefragPlan> run(const std::vector<Waiting>& waiting);
  /// Whether it, or its gang, has room once just these have moved, each of whom has to for that.
  [[nodiscard]] bool would_start(const Waiting& job, const std::vector<JobId>& moves);

 private:
  using Room = std::vector<placement::Placement>;
  using States = std::map<placement::NodeIndex, placement::NodeState>;
  /// A job that runs and may be moved.
  struct Movable {
    JobId id;
    placement::DemandIndex demand = 0;
    Room there;
    std::chrono::seconds ran{0};
    std::int64_t parts = 0;  ///< of GPUs, in all
    bool is_moved = false;   ///< by a plan
  };
  /// Positions in movables_, ascending.
  using Set = std::vector<std::size_t>;
  struct Cost {
    std::int64_t lost = 0;  ///< seconds by parts of GPUs
    std::size_t moves = 0;
    std::int64_t ran = 0;  ///< of those without GPUs, too

    friend auto operator<=>(const Cost&, const Cost&) = default;
  };
  /// Jobs after whose stop a node fits.
  struct Candidate {
    Cost cost;
    placement::NodeIndex node = 0;
    Set set;

    friend auto operator<=>(const Candidate&, const Candidate&) = default;
  };
  /// What comes of a set: it all has room.
  struct Trial {
    States nodes;              ///< those that change, as they are then
    Room to;                   ///< of who waits
    Set set;                   ///< of who moves
    std::vector<Room> places;  ///< where they go
  };

  [[nodiscard]] bool may_look() const { return looks_ < kMaxLooks; }
  [[nodiscard]] bool fits(placement::DemandIndex demand,
                          placement::NodeIndex node,
                          const placement::NodeState& state);
  [[nodiscard]] const std::set<placement::NodeIndex>& roomy(placement::DemandIndex demand);
  [[nodiscard]] placement::NodeState& changed(States& states, placement::NodeIndex node) const;
  void stop(std::size_t movable, States& states) const;
  [[nodiscard]] placement::NodeState without(placement::NodeIndex node, const Set& set) const;
  [[nodiscard]] Cost cost_of(const Set& set) const;

  [[nodiscard]] Set movables_on(placement::NodeIndex node, const Set& stopped) const;
  void add_small_sets(placement::DemandIndex demand,
                      placement::NodeIndex node,
                      const Set& there,
                      std::vector<Candidate>& found);
  [[nodiscard]] Set cheapest_device(placement::DemandIndex demand,
                                    const Set& there,
                                    placement::NodeIndex node,
                                    const placement::NodeState& state);
  [[nodiscard]] Set clear(placement::DemandIndex demand,
                          placement::NodeIndex node,
                          const Set& there);
  [[nodiscard]] std::vector<Candidate> candidates(placement::DemandIndex demand,
                                                  const std::vector<placement::NodeIndex>& targets,
                                                  const Set& stopped);
  [[nodiscard]] std::vector<int> devices_for(placement::DemandIndex demand,
                                             const placement::NodeState& state,
                                             const Set& set) const;
  [[nodiscard]] Room room_for(placement::DemandIndex demand, const States& states);
  [[nodiscard]] std::optional<Trial> try_in_order(placement::DemandIndex demand,
                                                  const std::vector<placement::NodeIndex>& targets,
                                                  const Set& order);
  [[nodiscard]] std::optional<Trial> try_set(placement::DemandIndex demand,
                                             const std::vector<placement::NodeIndex>& targets,
                                             const Set& set);
  [[nodiscard]] std::optional<Trial> search(placement::DemandIndex demand);
  [[nodiscard]] DefragOutcome why_not(placement::DemandIndex demand) const;
  [[nodiscard]] bool is_enough_free(placement::DemandIndex demand, int jobs = 1) const;
  [[nodiscard]] bool is_any_movable_for(placement::DemandIndex demand) const;

  [[nodiscard]] bool would_start(placement::DemandIndex demand, const Set& set);
  [[nodiscard]] bool is_bound_to_domain(const Waiting& job) const;
  [[nodiscard]] DefragPlan plan(const Waiting& job);
  [[nodiscard]] DefragPlan plan_alone(const Waiting& job);
  // defrag_gang.cpp
  /// One of those that start together.
  struct Member {
    JobId job;
    placement::DemandIndex demand = 0;
  };
  [[nodiscard]] std::vector<Member> members_with(const Waiting& job) const;
  [[nodiscard]] DefragPlan plan_together(const Waiting& job, const std::vector<Member>& members);
  [[nodiscard]] std::optional<Trial> search_together(const std::vector<Member>& members);
  [[nodiscard]] bool place(placement::DemandIndex demand, Trial& trial);
  [[nodiscard]] bool commit(Trial part, Trial& trial);
  [[nodiscard]] bool place_beside_moves(placement::DemandIndex demand, Trial& trial);
  States put(const States& states);
  [[nodiscard]] std::optional<Trial> moved_away(const Trial& trial);
  [[nodiscard]] DefragOutcome why_not_together(const std::vector<Member>& members) const;
  [[nodiscard]] bool would_start_together(const std::vector<Member>& members, const Set& set);
  void carry_out(const Trial& trial, DefragPlan& plan);
  [[nodiscard]] std::vector<Allocation> named(const Room& room) const;

  /// Looks at a node: some milliseconds.
  static constexpr std::size_t kMaxLooks = 20'000;
  /// Of a node, those that cost least: more are not combined.
  static constexpr std::size_t kMaxMovables = 64;

  Index& index_;
  const placement::Ledger& ledger_;
  Now now_;
  std::vector<placement::NodeState> nodes_;
  std::vector<Movable> movables_;                                           ///< by id
  std::map<placement::NodeIndex, Set> by_node_;                             ///< the cheapest first
  std::map<placement::DemandIndex, std::set<placement::NodeIndex>> roomy_;  ///< as nodes_ are
  std::map<placement::DemandIndex, DefragOutcome> in_vain_;                 ///< the same
  std::optional<Set> only_;                                                 ///< none but these move
  std::size_t looks_ = 0;
};

/// The first jobs that may start as soon as there is room, at most so many, in the order in which
/// they are considered: of those that start together the first alone.
[[nodiscard]] std::vector<Waiting> first_for_moves(Index& index, std::size_t most);

}  // namespace gflow::engine
