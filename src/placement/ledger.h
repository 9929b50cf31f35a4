// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/topology.h"
#include "placement/demand.h"

namespace gflow::placement {

/// Position of a node in its ledger, for as long as it is there and nobody sorts. That of a node
/// that was removed is given to one that comes later.
using NodeIndex = std::int32_t;
using ModelIndex = std::int32_t;
using DemandIndex = std::int32_t;
constexpr DemandIndex kForAnyDemand = -1;

/// One device as its node describes it.
struct DeviceFacts {
  std::string vendor;  ///< lower case
  std::string model;   ///< short name of the catalogue, "A100"
  Memory memory{};     ///< in all; 0: not known, then nothing that declares memory goes there
  /// Of it, what gflow cannot give out: used by processes that are not gflow's, or by jobs beyond
  /// what they declared.
  Memory memory_lost{};
  /// Of what is lost, what the driver keeps for itself: shares are of the rest.
  Memory memory_kept{};
  bool usable = true;  ///< false: nothing is placed there (broken, drained, or used by others)
  bool absent =
      false;  ///< no device has the index: indices of those that go are not filled at once
  /// Nothing else is placed there than this demand and those that differ from it in what scores do
  /// not look at (scored_part()).
  DemandIndex kept_for = kForAnyDemand;

  friend bool operator==(const DeviceFacts&, const DeviceFacts&) = default;
};

/// As wants() of demand.h; an absent one nobody does.
[[nodiscard]] inline bool wants(const Demand& demand, const DeviceFacts& device) {
  return !device.absent && wants(demand, device.vendor, device.model);
}

/// One machine as it describes itself.
struct Node {
  std::string name;           ///< unique in a ledger
  std::vector<Label> labels;  ///< sorted
  std::int64_t milli_cpus = 0;
  Memory memory{};
  std::vector<DeviceFacts> devices;          ///< by index
  std::shared_ptr<const Topology> topology;  ///< null or empty: nothing is known of the links
  bool ready = true;                         ///< false: it does not answer
  bool drained = false;                      ///< an administrator lets nothing new start there
  bool healthy = true;                       ///< false: launches fail there

  friend bool operator==(const Node& a, const Node& b);
};

/// How a job is on what it holds.
enum class Presence : std::uint8_t {
  Working,
  Suspended,  ///< keeps only memory
  Parking,    ///< suspended, and its GPU memory is on its way to host memory: it has both
  Parked,     ///< suspended, and has nothing of its GPUs, but host memory for what it had of them
  Unparking,  ///< works, and has that host memory still
  Lending,    ///< its GPUs are idle, and their memory is on its way to host memory; it runs on
  Lent,       ///< so it is there, and others may have its GPUs
  Recalled,   ///< the same, and it wants them back
};
/// Whether it has the compute of its GPUs.
[[nodiscard]] constexpr bool works(Presence presence) {
  return presence == Presence::Working || presence == Presence::Unparking;
}
/// Whether it lends its GPUs, to jobs that give them back when it wants them.
[[nodiscard]] constexpr bool lends(Presence presence) { return presence >= Presence::Lending; }
/// Of one that does: whether nobody gets them yet, as it may turn out that they cannot be lent, or
/// any more.
[[nodiscard]] constexpr bool withholds(Presence presence) {
  return presence == Presence::Lending || presence == Presence::Recalled;
}
[[nodiscard]] constexpr bool has_cpus(Presence presence) {
  return works(presence) || lends(presence);
}
/// Whether it has memory of its GPUs.
[[nodiscard]] constexpr bool has_gpu_memory(Presence presence) {
  return presence != Presence::Parked && presence != Presence::Lent &&
         presence != Presence::Recalled;
}
/// Whether host memory is its own beyond its demand: Ledger::copy_of().
[[nodiscard]] constexpr bool has_copy(Presence presence) {
  return presence == Presence::Parking || presence == Presence::Parked ||
         presence == Presence::Unparking || lends(presence);
}

/// What is left of a device and who is on it.
struct DeviceState {
  Share free = Share::whole();
  Memory memory_free{};  ///< below nothing if a device shrank under its jobs
  ModelIndex model = 0;
  std::int16_t users = 0;
  std::int16_t suspended = 0;     ///< jobs that only keep memory here
  std::int16_t lent = 0;          ///< jobs that lend it: only who borrows is placed here
  std::int16_t withheld = 0;      ///< of them, those for which nobody is yet, or any more
  std::int16_t time_sliced = 0;   ///< of the users, those in mode TimeSlice
  GpuMode mode = GpuMode::Whole;  ///< of those on it, TimeSlice where modes mix; Whole if none is
  bool usable = true;
  DemandIndex kept_for = kForAnyDemand;
  Memory memory{};         ///< in all; 0: not known
  Memory memory_shared{};  ///< what shares are of: all but what the driver keeps

  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

/// What is left of a node. Devices are held by index; one that is not there is not usable.
struct NodeState {
  std::int64_t milli_cpus_free = 0;
  Memory memory_free{};
  bool open = true;  ///< ready, healthy and not drained
  std::vector<DeviceState> devices;

  friend bool operator==(const NodeState&, const NodeState&) = default;
};

/// What a job has on one node.
struct Placement {
  NodeIndex node = 0;
  std::vector<int> devices;  ///< ascending; empty for a job without devices

  friend bool operator==(const Placement&, const Placement&) = default;
};

/// How many jobs may take turns on a device, and whether modes may mix there.
struct SharingRules {
  int max_jobs = 32;        ///< of one device, in modes Fraction and TimeSlice
  int max_time_sliced = 4;  ///< of one device, in mode TimeSlice
  bool mix_modes = false;   ///< Fraction and TimeSlice on one device
  friend bool operator==(const SharingRules&, const SharingRules&) = default;
};

/// What a node lacks for a demand, by how much: the least that is missing on the node. Several may
/// apply at once.
struct Shortfall {
  bool closed = false;       ///< not ready, not healthy, or drained
  bool selector = false;     ///< it is not of the right sort: selects()
  int devices = 0;           ///< how many suitable devices are missing, for whatever reason
  int devices_suitable = 0;  ///< devices of the right vendor, model and size, held or not
  int devices_free = 0;      ///< of them, how many could be given now
  Memory gpu_memory{};       ///< the best device that lacks only memory lacks this much
  Memory gpu_memory_need{};  ///< and this much was needed there
  Share share{};             ///< the best device that lacks only compute lacks this much
  std::int64_t milli_cpus = 0;
  Memory memory{};

  [[nodiscard]] bool fits() const {
    return !closed && !selector && devices == 0 && milli_cpus == 0 && memory == Memory{};
  }
};

/// A job's part on a node, as the node sees it.
struct Hold {
  DemandIndex demand = 0;
  std::vector<int> devices;
  Presence presence = Presence::Working;
};

/// Nodes, their devices, and what of them is held: exact, in integers. One thread owns it; a copy
/// is a what-if. Nothing here chooses: it only says what is possible.
class Ledger {
 public:
  explicit Ledger(SharingRules rules = {}) : rules_(rules) {}

  /// A new node, or new facts about the one of this name; what is held there stays held.
  NodeIndex put(Node node);
  /// Forgets a node. REQUIRES: nothing is held there.
  void remove(NodeIndex index);
  /// Puts the nodes in the order of their names (node_name_less), so that what is chosen among
  /// equals does not depend on when they came. Returns where each index went, or nothing if all
  /// stayed. What others keep by index has to follow.
  [[nodiscard]] std::optional<std::vector<NodeIndex>> sort();
  [[nodiscard]] std::optional<NodeIndex> find(const std::string& name) const;
  /// One more than the greatest index; at an index of no node stands one that has nothing and takes
  /// nothing.
  [[nodiscard]] NodeIndex size() const { return static_cast<NodeIndex>(nodes_.size()); }
  [[nodiscard]] std::size_t count() const { return by_name_.size(); }  ///< of nodes
  [[nodiscard]] bool is_there(NodeIndex index) const {
    return std::ranges::find(vacant_, index) == vacant_.end();
  }
  [[nodiscard]] const Node& node(NodeIndex index) const { return nodes_[at(index)]; }
  [[nodiscard]] const NodeState& state(NodeIndex index) const { return states_[at(index)]; }
  /// What is held there, in no order.
  [[nodiscard]] std::span<const Hold> holds(NodeIndex index) const { return holds_[at(index)]; }
  [[nodiscard]] const SharingRules& rules() const { return rules_; }
  void set_rules(const SharingRules& rules) { rules_ = rules; }

  /// Demands are interned: equal demands have one index, and an index stays.
  DemandIndex intern(const Demand& demand);
  /// Takes back the demand interned last. REQUIRES: nothing is held by it, no placer knows it.
  void forget_last_demand();
  [[nodiscard]] std::optional<DemandIndex> find(const Demand& demand) const;
  [[nodiscard]] DemandIndex demands() const { return static_cast<DemandIndex>(demands_.size()); }
  [[nodiscard]] const Demand& demand(DemandIndex index) const {
    return *demands_[at(index)].demand;
  }

  [[nodiscard]] ModelIndex models() const { return static_cast<ModelIndex>(models_.size()); }
  /// Whether a device of this model is what the demand wants, whatever is on it.
  [[nodiscard]] bool accepts(DemandIndex demand, ModelIndex model) const {
    return demands_[at(demand)].accepts[at(model)] != 0;
  }
  /// The same for one that is not interned.
  [[nodiscard]] bool accepts(const Demand& demand, ModelIndex model) const;
  /// Whether the node is of the right sort, whatever is left there: its labels, and the devices of
  /// a demand that only sees them.
  [[nodiscard]] bool selects(DemandIndex demand, NodeIndex node) const;

  /// Whether this device can take one device's worth of the demand now.
  [[nodiscard]] bool device_fits(DemandIndex demand, const DeviceState& device) const;
  /// Whether the node can take the demand's part for one node now.
  [[nodiscard]] bool fits(DemandIndex demand, NodeIndex node) const {
    return fits_state(demand, node, state(node));
  }
  /// The same if it stood like this.
  [[nodiscard]] bool fits_state(DemandIndex demand, NodeIndex node, const NodeState& as) const;
  /// The first devices of the node that the demand could have then. REQUIRES: it fits.
  [[nodiscard]] std::vector<int> first_devices(DemandIndex demand, const NodeState& as) const;
  /// Whether a suspended job of this demand could go on if the node stood like this, without it: it
  /// keeps its memory, so that only compute is missing, and what starts nowhere may go on there.
  /// One that is parked needs the memory of its GPUs, too.
  [[nodiscard]] bool can_go_on(DemandIndex demand,
                               const NodeState& as,
                               const std::vector<int>& devices,
                               Presence presence) const;
  /// Whether the device has the compute for it then.
  [[nodiscard]] bool has_compute(DemandIndex demand, const DeviceState& device) const;
  /// Whether it has the memory.
  [[nodiscard]] bool has_memory(DemandIndex demand, const DeviceState& device) const;
  /// Whether the node could if nothing were held there. Closed nodes count as they would be open.
  [[nodiscard]] bool could_fit(DemandIndex demand, NodeIndex node) const;
  [[nodiscard]] Shortfall shortfall(DemandIndex demand, NodeIndex node) const {
    return shortfall_state(demand, node, state(node));
  }
  [[nodiscard]] Shortfall shortfall_state(DemandIndex demand,
                                          NodeIndex node,
                                          const NodeState& as) const;

  /// Device memory one device of this model has to set aside for the demand: what it declared, or
  /// for a fraction that declared nothing its share of the device's memory.
  [[nodiscard]] Memory reserve_on(const Demand& demand, Memory device_memory) const;

  /// What a job of the demand keeps of a device's memory: that, but all of it while it is suspended
  /// and nobody knows how much it has.
  [[nodiscard]] Memory kept_on(const Demand& demand, Memory device_memory, Presence presence) const;

  /// The host memory that a job of the demand needs there for what it has of its devices: no more
  /// of theirs is parked. With what the driver keeps for the processes of one that declared it.
  [[nodiscard]] Memory copy_of(DemandIndex demand,
                               const NodeState& as,
                               const std::vector<int>& devices) const;

  /// Holds the demand's part for one node there. Does not ask whether it fits: a restarted daemon
  /// takes what its jobs have.
  void take(DemandIndex demand, const Placement& placement, Presence presence = Presence::Working);
  /// Gives back what take() took.
  void give_back(DemandIndex demand,
                 const Placement& placement,
                 Presence presence = Presence::Working);
  /// The same on a copy of a node's state, for a what-if. Devices must be there.
  void take_on(NodeState& state,
               DemandIndex demand,
               const std::vector<int>& devices,
               Presence presence = Presence::Working) const;
  void give_back_on(NodeState& state,
                    DemandIndex demand,
                    const std::vector<int>& devices,
                    Presence presence = Presence::Working) const;

  /// The same nodes and demands, and nothing held.
  [[nodiscard]] Ledger emptied() const;

  /// How many changes there have been: every put, take and give_back is one.
  [[nodiscard]] std::uint64_t version() const { return forgotten_ + changes_.size(); }
  /// The nodes that changed since that version, oldest first; empty optional if it is so long ago
  /// that only looking at every node helps.
  [[nodiscard]] std::optional<std::span<const NodeIndex>> changed_since(
      std::uint64_t version) const;

  /// The first contradiction in words, or "": no share held twice, modes unmixed.
  [[nodiscard]] std::string check() const;

 private:
  struct Interned {
    std::shared_ptr<const Demand> demand;
    DemandIndex part = 0;               // the first with the same scored_part()
    std::vector<std::uint8_t> accepts;  // by model
  };
  struct Model {
    std::string vendor;
    std::string name;
  };

  template <typename Index>
  static std::size_t at(Index index) {
    return static_cast<std::size_t>(index);
  }
  ModelIndex model(const DeviceFacts& facts);
  [[nodiscard]] bool is_for(DemandIndex demand, const DeviceState& device) const {
    return device.kept_for == kForAnyDemand ||
           demands_[at(device.kept_for)].part == demands_[at(demand)].part;
  }
  [[nodiscard]] NodeState state_from(NodeIndex node);
  void changed(NodeIndex node);

  SharingRules rules_;
  std::vector<Node> nodes_;
  std::vector<NodeState> states_;         // what nodes_ and holds_ leave
  std::vector<std::vector<Hold>> holds_;  // by node
  std::vector<NodeIndex> vacant_;         // of nodes that were removed
  std::map<std::string, NodeIndex> by_name_;
  std::map<Demand, DemandIndex> by_demand_;
  std::map<Demand, DemandIndex> by_part_;  // the first demand with each scored_part()
  std::vector<Interned> demands_;
  std::vector<Model> models_;
  std::vector<NodeIndex> changes_;
  std::uint64_t forgotten_ = 0;  // changes before the first in changes_
};

}  // namespace gflow::placement
