// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/index.h"

/// Inside of the engine: keeping the place of a job that does not fit (EASY backfill, Lifka, "The
/// ANL/IBM SP Scheduling System", 1995), where run times are expected and not only promised. Not
/// for other modules.
namespace gflow::engine {

/// Why a job may start before the blocked one, if it may.
enum class Passage {
  Blocked,
  InTime,     ///< it is over before the head can start
  FromSpare,  ///< what it takes is not needed by the head
  Patient,    ///< the head's start is not proven, and its patience is not used up
};

/// A node kept for a job, or for jobs that start together.
struct KeptNode {
  placement::NodeState state;                   ///< as it will be when they start
  std::vector<placement::DemandIndex> parts{};  ///< what of them goes there, in order

  /// Whether all of it would fit there if it stood like this.
  [[nodiscard]] bool takes_all(const placement::Ledger& ledger,
                               placement::NodeIndex node,
                               placement::NodeState as) const;
};

/// The place of a blocked job, or of a gang, during one pass: on certain nodes from a certain time
/// on. Nobody else's nodes are kept for it, and only these drain.
struct Reservation {
  Index::Head head;
  int priority = kDefaultPriority;
  bool against_all = true;     ///< else only against lower priorities, and without patience
  bool is_being_made = false;  ///< others stop for it
  std::map<placement::NodeIndex, KeptNode> nodes;
  /// Suspended jobs without whose memory it will not fit there: it can start only when they have
  /// gone on and ended.
  std::set<JobId> needs_gone;
  std::string domain{};      ///< the first node of the one that it has to be in; "": it has not
  std::int64_t missing = 0;  ///< parts of GPUs that have to be given back there first

  [[nodiscard]] Passage passage(const Index& index,
                                const Passer& passer,
                                const std::vector<placement::Placement>& there) const;
  /// Whether it may start wherever it wants.
  [[nodiscard]] std::optional<Passage> passage_by_time(const Index& index,
                                                       const Passer& passer) const;
  /// Whether others would stop in vain, as it would take its user to the limit that the head needs.
  [[nodiscard]] bool is_voided_by(const Index& index, const Passer& passer) const;
  /// A job that passed from what is spare takes it.
  void take_spare(const Index& index,
                  const Passer& passer,
                  const std::vector<placement::Placement>& there);
  /// Whether it waits for this one, which is suspended, to go on and end.
  [[nodiscard]] bool needs(const Passer& passer) const {
    return passer.suspended && needs_gone.contains(*passer.suspended);
  }
  [[nodiscard]] bool concerns(const Passer& passer) const {
    return against_all || passer.priority < priority;
  }

 private:
  [[nodiscard]] bool leaves_enough(const Index& index,
                                   const Passer& passer,
                                   const placement::Placement& there) const;
  void take(const Index& index,
            const Passer& passer,
            const placement::Placement& there,
            placement::NodeState& state) const;
};

/// An active job on a node, by when it is expected to be gone, and what it gives back there.
struct Leaving {
  MonoTime end;
  JobId job;
  placement::DemandIndex demand = 0;
  placement::Presence presence = placement::Presence::Working;
  std::vector<int> devices;

  friend bool operator<(const Leaving& a, const Leaving& b) {
    return a.end != b.end ? a.end < b.end : a.job < b.job;
  }
};
/// The active jobs of each node, by when they are gone. Asked for once as long as no job changes.
class Leavings {
 public:
  [[nodiscard]] const std::vector<std::vector<Leaving>>& by_node(Index& index);

 private:
  std::optional<std::uint64_t> revision_;
  std::vector<std::vector<Leaving>> by_node_;
};

/// All places kept in one pass: of the first jobs that do not fit and waited long enough, of those
/// for whom room is being made, and of jobs that do not fit against lower priorities.
class Places {
 public:
  /// How many places are kept against lower priorities at once.
  static constexpr std::size_t kMaxOutranking = 8;
  /// How many are kept against all. In the order of submission it is one.
  static constexpr int kMaxAgainstAll = 4;
  [[nodiscard]] static int max_against_all(const Policy& policy) {
    return policy.order.order == Order::Submission ? 1 : kMaxAgainstAll;
  }

  /// This job does not fit. To be told in the order of the queue.
  void block(Index& index, JobId job);
  /// Keeps the places of jobs that pause, as they could not be launched, in the domains that they
  /// have to come back to, as the others of their gangs run there.
  void keep_paused(Index& index);
  void keep(Reservation reservation) { kept_.push_back(std::move(reservation)); }
  /// Keeps the places that were not kept yet of those that go before such a priority.
  void keep_outranking(Index& index, int priority);
  /// What is kept, with what is spare of it: for one who may have to put back what he took.
  struct Kept {
    std::vector<Reservation> places;
    std::vector<JobId> blocked;
  };
  [[nodiscard]] Kept kept() const { return {kept_, blocked_}; }
  void put_back(Kept kept) {
    kept_ = std::move(kept.places);
    blocked_ = std::move(kept.blocked);
  }
  /// Whether the job may start there before all of those; takes what is spare if so. A suspended
  /// one that one of them needs gone is not held back by those behind that one.
  [[nodiscard]] bool let_pass(Index& index,
                              const Passer& passer,
                              const std::vector<placement::Placement>& there);
  /// The same for a job that would get whatever devices of these nodes; takes nothing.
  [[nodiscard]] bool would_let_pass(Index& index,
                                    const Passer& passer,
                                    const std::map<placement::NodeIndex, placement::NodeState>& on);
  /// The nodes that are kept against the job.
  [[nodiscard]] std::vector<placement::NodeIndex> nodes_kept(const Passer& passer) const;
  /// Whether another one that does not fit is of no account, but for one that
  /// could_keep_one_more().
  [[nodiscard]] bool is_full() const { return first_ && blocked_.size() == kMaxOutranking; }
  /// Whether any further place might be kept against all.
  [[nodiscard]] bool could_keep_one_more(const Index& index) const;
  /// The first job that does not fit, of those whose place is kept against all.
  [[nodiscard]] const std::optional<Index::Head>& head() const { return head_; }
  /// The first of all that does not fit.
  [[nodiscard]] const std::optional<JobId>& first() const { return first_; }

  /// Whether a place is kept for a job whose user is at a limit by now.
  [[nodiscard]] bool has_one_at_limit(const Index& index) const;

 private:
  [[nodiscard]] bool keep_against_all(Index& index, JobId job);
  [[nodiscard]] bool is_over_limit(const Index& index, const Job& job) const;
  [[nodiscard]] std::set<placement::NodeIndex> nodes_against_all() const;
  [[nodiscard]] std::optional<QueueKey> needed_by(const Index& index, const Passer& passer) const;

  Leavings leavings_;
  int against_all_ = 0;  ///< places kept against all of one priority
  int tried_ = 0;        ///< jobs that would keep one if limits proved when they start
  std::vector<Reservation> kept_;
  std::set<GangNumber> gangs_;     ///< of those told that did not fit
  std::optional<JobId> hopeless_;  ///< the last of those that never will, as things are
  std::vector<JobId> blocked_;     ///< places not kept yet, which lower priorities may not take
  std::optional<Index::Head> head_;
  std::optional<JobId> first_;
};

/// Keeps the place of this job, which does not fit now, on none of the nodes `taken`.
[[nodiscard]] Reservation reserve(Index& index,
                                  Leavings& leavings,
                                  JobId head,
                                  const std::set<placement::NodeIndex>& taken);

/// The room that others leave who move for this job, or its gang, as event::MakeRoom had them;
/// nothing where none is made, or that would not do.
[[nodiscard]] std::optional<Reservation> keep_made_room(Index& index,
                                                        Leavings& leavings,
                                                        JobId head);

/// Gives back on the copy of a node's state what the job has there; nothing if it has nothing.
void without(Index& index, const Job& job, placement::NodeIndex node, placement::NodeState& state);

}  // namespace gflow::engine
