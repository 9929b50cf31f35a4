// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/machine.h"

namespace gflow {

/// What became of a node, as somebody who uses it may want to know.
struct NodeChange {
  enum class What {
    Appeared,     ///< jobs can be started there
    Gone,         ///< it was removed: nothing is started there any more
    Unreachable,  ///< it does not answer
    Answers,      ///< it does again
    Drained,      ///< the node, or one GPU of it
    Resumed,      ///< the same
    Unhealthy,    ///< launches fail there
    Healthy,      ///< they do not any more
  };
  std::string node;
  What what = What::Appeared;
  std::optional<int> gpu{};  ///< what was drained or resumed; empty: the node, or a GPU that is cut
  std::string reason{};      ///< "" where there is none
  std::string by{};          ///< who drained it; "" of all else
  std::string uuid{};        ///< of the GPU; "" of the whole node, or if it is not known

  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};
inline constexpr std::array<std::string_view, 8> kNodeChangeNames = {
    "appeared", "gone", "unreachable", "answers", "drained", "resumed", "unhealthy", "healthy"};
[[nodiscard]] constexpr std::string_view node_change_name(NodeChange::What what) {
  return kNodeChangeNames.at(static_cast<std::size_t>(what));
}

/// How a node stands.
struct NodeStanding {
  std::optional<std::string> unreachable{};  ///< why; empty: it answers
  std::vector<Drain> drains{};               ///< of it and its GPUs
  std::optional<std::string> unhealthy{};    ///< why; empty: launches are not known to fail there
};
using NodeStandings = std::map<std::string, NodeStanding>;  ///< of those that are there, by name

/// What changed between two looks at the nodes.
class NodeChanges {
 public:
  /// What is new; of the first look nothing is.
  [[nodiscard]] std::vector<NodeChange> see(NodeStandings now);

 private:
  std::optional<NodeStandings> told_;
};

}  // namespace gflow
