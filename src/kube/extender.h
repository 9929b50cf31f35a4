// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "kube/objects.h"
#include "kube/scheduler.h"
#include "placement/placer.h"

namespace gflow::kube {

/// What an extender of kube-scheduler knows of GPUs: which nodes have what a pod asks for, how good
/// they are for it, and which devices it has on the one that it comes to. The queue and all else of
/// a node are kube-scheduler's.
///
/// What is left of a node is worked out from the node and its pods, whoever bound them: those that
/// say which devices they have (gflow/allocation) have these, others that ask for GPUs as many as
/// they ask for. So one that starts knows what the one before it did. One thread owns it.
class Extender {
 public:
  Extender();
  Extender(const Extender&) = delete;
  Extender& operator=(const Extender&) = delete;

  // As the watches tell.
  void put(Node node);
  void node_gone(const std::string& uid);
  void put(Pod pod);
  void pod_gone(const std::string& uid);

  /// A pod as kube-scheduler sends it: nothing new where a watch has told of it.
  void meet(const Pod& pod, MonoTime now);
  /// Those that no watch has told of in ten seconds since: they may be gone before it could. Each
  /// once in ten seconds.
  [[nodiscard]] std::vector<Pod> unconfirmed(MonoTime now);

  /// Why a node cannot have a pod.
  struct Refusal {
    std::string why;
    bool may_evict = false;  ///< kube-scheduler may find pods there whose end would help
  };
  /// Of these nodes those that lack what the pod asks for, by name.
  [[nodiscard]] std::map<std::string, Refusal> refusals(const Pod& pod,
                                                        std::span<const std::string> nodes,
                                                        MonoTime now);
  /// Of the pods that were refused all nodes just now (kOverlooked) those for which there is room
  /// on one of these nodes that was told of since, each once, the most urgent and then the oldest
  /// first. kube-scheduler may have known of that room before, and asked too early: nothing has it
  /// ask again.
  [[nodiscard]] std::vector<Pod> overlooked(MonoTime now);
  static constexpr std::chrono::seconds kOverlooked{30};

  /// How good each of these nodes is for the pod: 10 the best of them, 0 the worst, or one that
  /// lacks something. All 0 for a pod without GPUs.
  [[nodiscard]] std::vector<int> scores(const Pod& pod, std::span<const std::string> nodes);
  /// Sets the devices aside that the pod is to have there, until it is seen there, or not_bound().
  /// Errors: Usage for a request that makes no sense, NotFound for a pod or a node that is not
  /// known, Exhausted where it lacks something by now, WrongState where the pod is on a node, or
  /// about to be.
  [[nodiscard]] Result<Bind> reserve(const std::string& uid, const std::string& node, MonoTime now);
  /// The pod is not there, and will not be.
  void not_bound(const std::string& uid);

  /// How many kinds of requests are kept: for tests of growth.
  [[nodiscard]] std::size_t kinds() const { return static_cast<std::size_t>(ledger_.demands()); }

 private:
  struct NodeEntry {
    struct Hold {
      placement::DemandIndex demand = 0;
      std::vector<int> devices;
    };
    Node node;
    std::vector<Device> devices;
    std::vector<Hold> holds{};  ///< as the ledger has them
  };
  struct PodEntry {
    Pod pod;
    std::string node;                ///< where it is, or is about to be; ""
    std::string given;               ///< gflow/allocation there
    bool is_under_way = false;       ///< to that node
    std::optional<MonoTime> told{};  ///< by kube-scheduler alone, and asked about, last then
  };
  /// What a pod asks of GPUs and of nothing else.
  struct Wanted {
    gflow::Request request;
    placement::DemandIndex demand = 0;
  };
  struct Refused {
    MonoTime when{};
    placement::Demand demand{};
    std::vector<bool> nodes;   ///< that were asked about, by index
    bool has_unknown = false;  ///< others were
  };

  void begin_anew();
  void learn(const Pod& pod);
  void place(PodEntry& entry, const std::string& node, std::string given);
  void move(PodEntry& entry, const std::string& node);
  void catch_up();
  void count(NodeEntry& entry);
  [[nodiscard]] std::optional<NodeEntry::Hold> named(const NodeEntry& entry,
                                                     const PodEntry& pod,
                                                     std::vector<std::int32_t>& parts);
  /// Empty: it asks for none.
  [[nodiscard]] Result<std::optional<Wanted>> wanted_by(const Pod& pod);
  [[nodiscard]] bool is_overlooked(const std::string& uid,
                                   const Refused& refused,
                                   const std::set<std::string>& nodes);
  [[nodiscard]] std::string allocation_on(const Wanted& wanted,
                                          const std::string& node,
                                          placement::NodeIndex index);

  placement::Ledger ledger_;
  std::unique_ptr<placement::Placer> placer_;
  placement::DemandIndex most_kinds_ = 0;          ///< beyond, those not in use are forgotten
  std::map<std::string, NodeEntry> nodes_;         ///< by name
  std::map<std::string, std::string> node_names_;  ///< by uid
  std::map<std::string, PodEntry> pods_;           ///< by uid
  std::map<std::string, std::set<std::string>> on_node_;  ///< uids by the node's name
  std::set<std::string> met_;                             ///< uids of pods that no watch told of
  std::set<std::string> dirty_;                           ///< nodes to be counted anew
  std::set<std::string> counted_;                         ///< that were, since overlooked()
  std::map<std::string, Refused> refused_;                ///< by uid
};

}  // namespace gflow::kube
