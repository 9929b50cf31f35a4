// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "placement/ledger.h"

/// A cluster as a program describes it, for the scheduler and the memory guard of the Python
/// package: the daemon's ledger and policies, filled from what nodes and pods say of themselves.
namespace gflow::native {

/// Devices of one kind on a node.
struct Gpus {
  std::string resource;  ///< "nvidia.com/gpu"
  std::string model;     ///< as its node calls it; "" if it does not
  int count = 0;
  std::optional<Memory> memory;  ///< of each; empty: not known
};

/// How much there is of something on a node, and how much of it is in use.
struct Amount {
  double all = 0;
  double used = 0;
};

struct ClusterNode {
  std::string name;
  std::vector<Gpus> gpus;
  Amount cpus;
  Amount memory_gb;  ///< of the host
};

/// What a pod asks for.
struct Need {
  int gpus = 0;
  Share share = Share::whole();     ///< of each
  Memory memory{};                  ///< of each; 0: not said
  std::string resource;             ///< "" is any
  std::vector<std::string> models;  ///< as people write them; empty is any
};

/// A node that has what is needed, and its score: from 0 to 100.
struct Ranked {
  int node = 0;
  double score = 0;
};

class Cluster {
 public:
  /// Its index. Throws std::invalid_argument for a name that is there already.
  int add(const ClusterNode& node);
  /// What pods hold on a node: whole devices and a part of one, of this resource. What the node
  /// does not have is not counted.
  void use(int node, const std::string& resource, double gpus);
  /// Sets memory aside on so many devices of a node that have it; false, and nothing, if there are
  /// fewer.
  [[nodiscard]] bool reserve(int node, int gpus, Memory each);

  /// Devices of this model (as people write it, "" is any) that nobody is on and that have so much
  /// memory left.
  [[nodiscard]] int idle(int node, std::string_view model, Memory memory) const;
  /// The nodes that have what is needed, the best first; equals in the order they were added.
  /// Throws std::invalid_argument for a policy that is none.
  [[nodiscard]] std::vector<Ranked> rank(const Need& need, std::string_view policy);

 private:
  [[nodiscard]] placement::NodeIndex checked(int node) const;
  void use_part(placement::NodeIndex node, const std::string& resource, Share part);
  void hold(placement::NodeIndex node, int device, Share part);

  placement::Ledger ledger_;
  std::vector<Amount> host_memory_;  // by node
};

/// A model as a request names it: one of the catalogue, else its short name.
[[nodiscard]] std::string model_of(std::string_view text);

}  // namespace gflow::native
