// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "placement/device_tables.h"
#include "placement/policy.h"
#include "placement/score_board.h"

namespace gflow::placement {

/// Where a demand goes: one placement for each of its nodes, in the order they were chosen.
struct Choice {
  std::vector<Placement> placements;
  std::vector<DeviceReason> reasons;  ///< of each placement's devices, in the same order
  Score score = 0;                    ///< of the first node

  friend bool operator==(const Choice&, const Choice&) = default;
};

/// How good one node is for a demand, and why.
struct Ranked {
  NodeIndex node = 0;
  Score score = 0;
  std::vector<int> devices;
  DeviceReason reason;
  std::vector<Term> terms;
  /// Of the best node: sets of its devices that would do, too, the best first.
  std::vector<DeviceChoice> others;

  friend bool operator==(const Ranked&, const Ranked&) = default;
};

/// Which node and which devices, by one policy. Whole devices of a node whose links are known are
/// chosen by its DeviceTable, whatever the policy; others by the policy.
/// Of the nodes a demand fits on, it takes one of the
/// highest score: the first (NodeIndex) of them, or for a policy that draws any of them, by a
/// number made from its seed and the ledger's version. The same ledger, profile and traffic give
/// the same choice.
///
/// Scores are kept for each kind of demand that was asked for, and worked out again only for nodes
/// that changed since: so a placer belongs to one ledger, which may move but must be the same one,
/// going forward.
class Placer {
 public:
  /// With a profile: that and no other. Without: what arrived() counts.
  explicit Placer(std::unique_ptr<Policy> policy, std::uint64_t seed = 1);
  Placer(std::unique_ptr<Policy> policy, Profile profile, std::uint64_t seed = 1);

  /// Where the demand goes now: all of its nodes, different ones and none of the excluded, or
  /// nothing if it does not fit.
  [[nodiscard]] std::optional<Choice> choose(const Ledger& ledger,
                                             DemandIndex demand,
                                             std::span<const NodeIndex> excluded = {});
  /// The same on these nodes alone, ascending; costs what they are, however many others there are.
  [[nodiscard]] std::optional<Choice> choose_among(const Ledger& ledger,
                                                   DemandIndex demand,
                                                   std::span<const NodeIndex> nodes,
                                                   std::span<const NodeIndex> excluded = {});
  /// What choose() has to decide, found without anything kept: by looking at every node. The
  /// reference its tests hold it to.
  [[nodiscard]] std::optional<Choice> choose_by_scan(const Ledger& ledger,
                                                     DemandIndex demand,
                                                     std::span<const NodeIndex> excluded = {});
  /// The best nodes for the demand's part for one node, best first, at most so many; of the first a
  /// few other sets of devices, each without one of those it would give.
  [[nodiscard]] std::vector<Ranked> rank(const Ledger& ledger,
                                         DemandIndex demand,
                                         std::size_t most);

  /// How good one node is for the demand's part for one node now; nothing if it does not fit.
  [[nodiscard]] std::optional<Score> score_on(const Ledger& ledger,
                                              DemandIndex demand,
                                              NodeIndex node);
  /// The devices that part would have there. REQUIRES: it fits.
  [[nodiscard]] std::vector<int> devices_on(const Ledger& ledger,
                                            DemandIndex demand,
                                            NodeIndex node);

  /// Takes note of what changed in the ledger, as choose() does before it chooses: what is learned
  /// of the nodes is learned when they change, whether anything is placed or not.
  void catch_up(const Ledger& ledger);

  /// Jobs were submitted, or one that had been placed left. Policies may learn from it.
  void arrived(const Ledger& ledger, DemandIndex demand, std::uint64_t count = 1);
  void departed(const Ledger& ledger);

  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] const Profile& profile() const { return profile_; }

  /// Drops what is kept for the demand the ledger interned last.
  void forget_last_demand(const Ledger& ledger);
  /// Drops all that is kept: the next ledger may be another one.
  void forget();

 private:
  /// Demands that differ only in host memory and number of nodes share their scores.
  struct Kind {
    DemandIndex demand = 0;  // one of them
    ScoreBoard board;
    std::vector<std::uint32_t> scored;  // by node: its count of changes when it was scored
    std::uint64_t seen = 0;             // version of the ledger
  };

  void prepare(const Ledger& ledger);
  void learn(const Demand& demand, std::int64_t count);
  void observe(const Ledger& ledger);
  [[nodiscard]] NodeView valued_view(const Ledger& ledger, NodeIndex node) const;
  void look_at(const Ledger& ledger, NodeIndex node);
  Kind& kind_of(const Ledger& ledger, DemandIndex demand);
  Kind& scored_kind(const Ledger& ledger, DemandIndex demand);
  void score_changed(const Ledger& ledger, Kind& kind);
  void score_node(const Ledger& ledger, Kind& kind, NodeIndex node);
  [[nodiscard]] Score score(const Ledger& ledger, DemandIndex demand, const NodeView& view);
  /// Fills fits_; whether the demand fits but for host memory.
  [[nodiscard]] bool fits(const Ledger& ledger, DemandIndex demand, const NodeView& view);
  void prefer_own(const Ledger& ledger, DemandIndex demand, NodeIndex node);
  [[nodiscard]] Question question(const Ledger& ledger, DemandIndex demand, const NodeView& view);
  [[nodiscard]] DeviceChoice devices(const Ledger& ledger,
                                     DemandIndex demand,
                                     const NodeView& view);
  /// The same of the devices that `fits` says can be given, enough for the demand.
  [[nodiscard]] DeviceChoice devices_among(const Question& asked);
  [[nodiscard]] std::vector<DeviceChoice> other_devices(const Ledger& ledger,
                                                        DemandIndex demand,
                                                        const NodeView& view,
                                                        const DeviceChoice& chosen);
  [[nodiscard]] std::optional<NodeIndex> best_node(const Ledger& ledger,
                                                   ScoreBoard& board,
                                                   const Demand& demand) const;
  /// The nodes; their devices are still to be chosen.
  [[nodiscard]] std::optional<Choice> choose_on(const Ledger& ledger,
                                                DemandIndex demand,
                                                ScoreBoard& board,
                                                std::span<const NodeIndex> excluded);
  /// With the devices that each of its nodes gives.
  [[nodiscard]] Choice with_devices(const Ledger& ledger, DemandIndex demand, Choice choice);

  std::unique_ptr<Policy> policy_;
  Traits traits_;
  Profile profile_;
  bool learns_ = false;
  DemandCounter counter_;
  Traffic traffic_;
  std::uint64_t seed_ = 1;

  DeviceTables tables_;
  bool prepared_ = false;
  ModelIndex models_ = 0;  ///< that there were then
  SharingRules rules_;
  std::uint64_t seen_ = 0;              // version of the ledger that views_ show
  std::vector<NodeView> views_;         // by node
  std::vector<std::uint32_t> changes_;  // by node: how often its view changed
  std::map<Demand, int> kind_by_part_;
  std::vector<int> kind_by_demand_;  // -1: not yet known
  std::vector<Kind> kinds_;
  std::vector<std::uint8_t> fits_;  // by device of the node being looked at
};

}  // namespace gflow::placement
