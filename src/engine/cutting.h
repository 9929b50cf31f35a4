// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "core/machine.h"
#include "core/made_slice.h"
#include "placement/cutting.h"
#include "placement/ledger.h"

/// Inside of the engine: slices of MIG that are made and removed as jobs ask for them. Not for
/// other modules.
namespace gflow::engine {

struct Index;

/// How long a slice that was made may be in no reading until it is asked for again, and one that
/// was removed leave its instance in one until that is taken for somebody else's.
constexpr std::chrono::seconds kLongestUnseen{30};

/// A slice that is gflow's, and what is known of it only while the daemon lives.
struct SliceRecord {
  MadeSlice slice;
  bool is_ordered = false;             ///< under way, and who makes and removes was told
  bool is_seen = false;                ///< made, and a reading had it
  MonoTime since{};                    ///< when it was made, or removed
  std::string trouble{};               ///< why what was ordered is not done, or was refused
  int failures = 0;                    ///< in a row
  std::optional<MonoTime> retry_at{};  ///< nothing is ordered for it before
};

/// A slice that the driver would not make.
struct CutRefusal {
  std::string node;
  std::string gpu;  ///< UUID
  std::string profile;
  std::string why;
  int failures = 0;  ///< in a row
  MonoTime until{};  ///< it is not tried again before
};

/// Made or removed, and no reading that is known tells of that.
[[nodiscard]] bool is_unseen(const SliceRecord& record);

/// The device that a slice is; null if none is known.
[[nodiscard]] const Device* device_of(const Index& index, const MadeSlice& slice);

/// The slice of gflow's that a device is, or is becoming; null if it is none.
[[nodiscard]] SliceRecord* slice_of(Index& index, const std::string& node, const Device& device);

/// What the demand would have of a GPU, in the order of its kinds: profiles that can be made of it.
[[nodiscard]] std::vector<std::string> profiles_for(const placement::Demand& demand,
                                                    const MigGpu& gpu);

/// The GPUs of a node that may be cut, and of which it is known how.
[[nodiscard]] std::vector<const MigGpu*> cut_gpus(const Index& index, placement::NodeIndex node);

/// Whether the demand is one for which slices are made: of one node, and by the name of a profile.
[[nodiscard]] bool may_be_cut_for(const placement::Demand& demand);

/// How many slices that the demand would have its GPUs could be cut into, whatever is there.
[[nodiscard]] int slices_to_make(const Index& index,
                                 const placement::Demand& demand,
                                 placement::NodeIndex node);

/// Whether the node could take the demand's part if its GPUs were cut for it, whatever is there.
[[nodiscard]] bool could_be_cut(const Index& index,
                                placement::DemandIndex demand,
                                placement::NodeIndex node);

/// What such slices would be called, of all nodes, each once: "H100-3g.40gb".
[[nodiscard]] std::vector<std::string> models_to_cut(const Index& index);

/// When the next of what was refused may be tried again, if that is to come.
[[nodiscard]] std::optional<MonoTime> next_cut(const Index& index);

}  // namespace gflow::engine
