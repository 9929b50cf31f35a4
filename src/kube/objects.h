// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "kube/gang.h"
#include "kube/inventory.h"
#include "kube/labels.h"
#include "kube/neighbour_rules.h"

/// Nodes, pods and namespaces, with what a decision looks at and nothing else.
namespace gflow::kube {

/// Resources in thousandths, by name: "cpu", "memory", "pods", "nvidia.com/gpu".
using Amounts = std::map<std::string, std::int64_t>;
/// 0 of one that is not there.
[[nodiscard]] std::int64_t amount_of(const Amounts& amounts, std::string_view name);
void add_to(Amounts& sum, const Amounts& more);

struct Taint {
  std::string key;
  std::string value;
  std::string effect;

  friend auto operator<=>(const Taint&, const Taint&) = default;
};

struct Toleration {
  std::string key;  ///< "" is every key
  std::string op;   ///< "Exists" or "Equal"
  std::string value;
  std::string effect;  ///< "" is every effect

  friend auto operator<=>(const Toleration&, const Toleration&) = default;
};

struct Node {
  std::string uid;
  std::string name;
  Words labels;
  std::vector<Taint> taints;
  bool is_cordoned = false;  ///< spec.unschedulable
  Amounts allocatable;
  std::vector<ListedDevice> inventory;  ///< empty: nobody lists its devices

  friend bool operator==(const Node&, const Node&) = default;
};

struct HostPort {
  int port = 0;
  std::string protocol;
  std::string ip;

  friend auto operator<=>(const HostPort&, const HostPort&) = default;
};

/// What a pod allows of its node, whatever is left there.
struct Wishes {
  Words node_selector;
  /// Required node affinity: one of them has to hold; empty optional: it has none.
  std::optional<std::vector<Term>> affinity;
  std::vector<Toleration> tolerations;

  friend auto operator<=>(const Wishes&, const Wishes&) = default;
};

/// A PersistentVolumeClaim that a pod uses.
struct PodClaim {
  std::string name;
  bool is_own = false;  ///< made for the pod, and going with it (an ephemeral volume)

  friend auto operator<=>(const PodClaim&, const PodClaim&) = default;
};

/// A ResourceClaim that a pod uses.
struct PodDevices {
  std::string name;      ///< as the pod calls it
  std::string claim;     ///< "" as long as it is not made, or if there is nothing to be had
  bool is_own = false;   ///< made for the pod by a template
  bool is_none = false;  ///< whoever makes claims of templates said that it takes none

  friend auto operator<=>(const PodDevices&, const PodDevices&) = default;
};

struct Pod {
  std::string uid;
  std::string name_space;
  std::string name;
  Words labels;
  std::string version;  ///< resourceVersion
  std::string owner;    ///< what made it and would make it anew: "Job train"; "" if nothing
  std::string job;      ///< uid of its owner where that is a Job
  std::optional<bool> may_evict{};  ///< whether its annotations let it be evicted; empty: unsaid
  std::string scheduler;
  std::string node;        ///< "" while it waits
  std::string gpu;         ///< the annotation gflow/gpu
  std::string allocation;  ///< the annotation gflow/allocation
  int priority = 0;
  bool is_sparing = false;         ///< preemptionPolicy Never: nobody is evicted for it
  std::chrono::seconds grace{30};  ///< between being told to end and its end
  bool is_gated = false;           ///< has scheduling gates
  bool is_deleted = false;         ///< being deleted
  WallTime created;
  std::optional<WallTime> started{};  ///< by its kubelet, or as long as that is silent when bound
  Amounts requests;                   ///< what it holds of its node
  Wishes wishes;
  NeighbourRules rules;
  std::vector<HostPort> ports;
  std::vector<PodClaim> claims;       ///< in order, each once
  std::vector<PodDevices> devices;    ///< as it has them
  bool has_local_data = false;        ///< on its node, which is lost or left where it goes
  std::optional<GangWish> gang;       ///< with whom it starts
  NearWish near;                      ///< how near these
  std::vector<std::string> unjudged;  ///< what it asks for that is not judged here
  std::string mistake;                ///< what of its requests cannot be read; "" if all can
  std::string gang_mistake;           ///< the same of with whom it starts
  std::string told;  ///< message of PodScheduled=False; "" if that is not its condition

  [[nodiscard]] std::string full_name() const { return name_space + "/" + name; }
};

struct NameSpace {
  std::string uid;
  std::string name;
  Words labels;

  friend bool operator==(const NameSpace&, const NameSpace&) = default;
};

[[nodiscard]] Node node_of(const nlohmann::json& object);
[[nodiscard]] Pod pod_of(const nlohmann::json& object);
[[nodiscard]] NameSpace name_space_of(const nlohmann::json& object);
/// What a pod holds of its node, as kube-scheduler counts it: the containers together with those
/// that run beside them, or the most of what runs before; what the pod says of itself in place of
/// that; the overhead.
[[nodiscard]] Amounts held_by(const nlohmann::json& spec, std::string& mistake);

constexpr std::string_view kGpuAnnotation = "gflow/gpu";
constexpr std::string_view kAllocationAnnotation = "gflow/allocation";

}  // namespace gflow::kube
