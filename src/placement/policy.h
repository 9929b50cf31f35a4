// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/ledger.h"
#include "placement/profile.h"

namespace gflow::placement {

/// How good a node is for a demand: higher is better. What it is measured in is the policy's.
using Score = std::int32_t;
constexpr Score kNoScore = std::numeric_limits<Score>::min();  ///< the demand does not fit there

/// A node as scores see it: what they need of facts and state, side by side.
struct NodeView {
  NodeIndex index = 0;
  std::int64_t milli_cpus = 0;
  std::int64_t milli_cpus_free = 0;
  Memory memory_free{};
  bool open = false;
  ModelIndex model = -1;     ///< of all devices; -1 if they differ or there are none
  bool time_sliced = false;  ///< some device is shared by jobs that take turns
  bool has_suspended =
      false;  ///< a job on some device only keeps memory, or lends it; or it is kept
  bool knows_memory = false;    ///< the memory of some device is known
  int idle = 0;                 ///< devices nobody is on
  std::int32_t max_free = 0;    ///< the largest of free
  std::int64_t free_parts = 0;  ///< the sum of free
  /// Compute of each device that a fraction could get, in parts of Share; 0 if it is not usable or
  /// taken in another mode.
  std::vector<std::int32_t> free;
  /// What Policy::worth() says of it; kept so that it is asked once for each change of the node.
  std::int64_t worth = 0;

  friend bool operator==(const NodeView&, const NodeView&) = default;
};
[[nodiscard]] NodeView view_of(const Ledger& ledger, NodeIndex node);

/// What a policy is asked: how good is this node for this demand, which fits there.
struct Question {
  const Ledger& ledger;
  DemandIndex index;  ///< may differ in what scores do not look at: host memory, number of nodes
  const Demand& demand;
  const NodeView& node;
  std::span<const std::uint8_t> fits;  ///< by device: whether one device's worth fits there
};

/// One part of a score in words a person understands: weight * value is what it adds.
struct Term {
  std::string name;
  double weight = 1;
  double value = 0;

  friend bool operator==(const Term&, const Term&) = default;
};

/// How many jobs came and went since the placer was made.
struct Traffic {
  std::int64_t arrivals = 0;
  std::int64_t departures = 0;
};

/// What a policy may compute its tables from.
struct Setting {
  const Ledger& ledger;
  const Profile& profile;
  const Traffic& traffic;
};

/// How the placer may treat a policy.
struct Traits {
  /// Among the nodes of the highest score one is drawn; else the first is taken.
  bool draws = false;
  /// Nodes whose views are equal (but for the index) have equal scores.
  bool by_view = true;
};

/// Which node, and which of its devices: one way to score. A score depends on nothing but the
/// question and the tables made by prepare(), so that it may be cached until the node changes.
/// Policies do not look at host memory: it decides what fits, not what is good.
class Policy {
 public:
  virtual ~Policy() = default;

  [[nodiscard]] virtual Traits traits() const { return {}; }

  /// Makes what scores are read from. Called before the first score, and again when the profile or
  /// the shape of the cluster (nodes, devices, what is usable) changed, or observe() asked for it.
  virtual void prepare(const Setting&) {}
  /// Called after each arrival and departure. True: prepare() has to be called, as scores of
  /// unchanged nodes have changed.
  [[nodiscard]] virtual bool observe(const Setting&) { return false; }

  /// Something about the node as it stands that scores need again and again.
  [[nodiscard]] virtual std::int64_t worth(const Ledger&, const NodeView&) const { return 0; }

  /// REQUIRES: the demand fits.
  [[nodiscard]] virtual Score score(const Question& question) const = 0;

  /// The devices of the node it would take, ascending. By default those with the least compute left
  /// that fit, then the lowest. REQUIRES: the demand fits.
  [[nodiscard]] virtual std::vector<int> devices(const Question& question) const;

  /// The score in parts.
  [[nodiscard]] virtual std::vector<Term> explain(const Question& question) const;
};

/// What an administrator may set about policies.
struct PolicyOptions {
  /// Of spread, pack and balanced, in percent: GPU, memory and CPU utilisation, fragmentation.
  int gpu_weight = 40;
  int memory_weight = 30;
  int cpu_weight = 20;
  int fragmentation_weight = 10;
  std::uint64_t seed = 1;  ///< of random

  friend bool operator==(const PolicyOptions&, const PolicyOptions&) = default;
};

struct PolicyEntry {
  std::string_view name;
  std::string_view summary;  ///< one line for people
  std::unique_ptr<Policy> (*make)(const PolicyOptions& options);
};

/// All policies, the default first.
[[nodiscard]] std::span<const PolicyEntry> policies();
[[nodiscard]] const PolicyEntry* find_policy(std::string_view name);

/// Devices that fit, those with the least compute left first, then the lowest; `gpus` of them,
/// ascending.
[[nodiscard]] std::vector<int> least_free(const Question& question);

/// What the demand leaves of each device's compute if it takes these.
[[nodiscard]] std::vector<std::int32_t> free_after(const Question& question,
                                                   std::span<const int> devices);

}  // namespace gflow::placement
