// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// What there is in a cluster, as numbers.
namespace gflow::kube {

/// What a pod waits for.
enum class WaitsFor {
  Room,     ///< some node could take it, if others left
  Node,     ///< no node could, as they are
  Request,  ///< another one: what it asks for cannot be had here
  Binding,  ///< it has its node, and that is being written
  Limit,    ///< its namespace to hold fewer GPUs
  Gang,     ///< more of the pods that start together with it, or what says how many these are
};
constexpr std::array kWaitsForNames = {"room", "node", "request", "binding", "limit", "gang"};
static_assert(kWaitsForNames.size() == static_cast<std::size_t>(WaitsFor::Gang) + 1);

enum class GpuState {
  Held,    ///< by pods that this scheduler put there; a part counts as its part
  Others,  ///< asked for by pods of others
  Closed,  ///< free, of a node that takes no pods: cordoned, or with a taint of Kubernetes' own
  Free,
};
constexpr std::array kGpuStateNames = {"held", "others", "closed", "free"};
static_assert(kGpuStateNames.size() == static_cast<std::size_t>(GpuState::Free) + 1);

struct Counts {
  std::size_t nodes = 0;
  std::array<std::size_t, kWaitsForNames.size()> waiting{};
  /// In parts, of which a GPU has Share::kWholeParts.
  std::array<std::int64_t, kGpuStateNames.size()> gpus{};

  friend bool operator==(const Counts&, const Counts&) = default;
};

}  // namespace gflow::kube
