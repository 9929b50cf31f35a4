// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "slurm/facts.h"

namespace gflow::slurm {

/// GPUs of one type, as nodes have them.
struct GpuKind {
  std::string type;   ///< as Slurm calls it; "" if it calls it nothing
  std::string model;  ///< catalogue::device_model() of it
  /// "shard" or "mps", by which nodes with such GPUs share them; "" if one does not.
  std::string parts{};
  std::int64_t parts_of_gpu = 0;  ///< the fewest of a node
  bool is_uneven = false;         ///< other nodes have more of them for such a GPU

  /// A slice that MIG made ("a100_3g.20gb"), and no whole GPU.
  [[nodiscard]] bool is_slice() const;
};
/// In the order in which nodes have them.
[[nodiscard]] std::vector<GpuKind> gpu_kinds(const std::vector<Node>& nodes);

/// How many of these parts ("shard") a GPU of that type has, by the nodes with the fewest; "": of
/// any type. 0: none is known to have some.
[[nodiscard]] std::int64_t parts_of_gpu(const std::vector<GpuKind>& kinds,
                                        std::string_view parts,
                                        std::string_view type);

}  // namespace gflow::slurm
