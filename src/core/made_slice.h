// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/job_id.h"
#include "core/mig_gpu.h"

namespace gflow {

/// How far a slice of MIG is that gflow makes, has made or removes. As stored: never renumber.
enum class SliceStage : std::uint8_t {
  Making = 0,    ///< decided; the driver may have been asked, or not yet
  Made = 1,      ///< it is there
  Removing = 2,  ///< decided; it may be there still, or not any more
  Removed = 3,   ///< it is not there, and readings of before may still have it
};

/// A slice that gflow cut, or is about to: what is not in this list is somebody else's. Known by
/// its place on its GPU, of which there is one in each.
struct MadeSlice {
  std::string node;
  std::string gpu;      ///< UUID of the GPU
  std::string profile;  ///< "3g.40gb"
  int start = 0;        ///< of its memory slices
  int size = 0;
  SliceStage stage = SliceStage::Making;
  std::string uuid{};          ///< of the MIG device, once it is made
  int gpu_instance = -1;       ///< the same
  std::optional<JobId> job{};  ///< who waits for it, or for its place: it is kept for that one
  /// Of an order: it may have been done before, so that what is found at the place is what was made
  /// then. Not stored.
  bool again = false;
  /// Of an order to make it that was given before: nobody wants it any more, so that it is made
  /// only as far as it was begun. Not stored.
  bool only_looks = false;

  [[nodiscard]] MigSlots slots() const { return mig_slots(start, size); }
  [[nodiscard]] bool is_under_way() const {
    return stage == SliceStage::Making || stage == SliceStage::Removing;
  }
  friend bool operator==(const MadeSlice&, const MadeSlice&) = default;
};

/// What became of an order to make a slice or to remove it.
namespace slice_outcome {
struct Made {
  std::string uuid;
  int gpu_instance = 0;
  friend bool operator==(const Made&, const Made&) = default;
};
struct Removed {
  friend bool operator==(const Removed&, const Removed&) = default;
};
/// It was looked at, or asked for the first time, and all is as it was before.
struct Refused {
  std::string why;  ///< for people
  friend bool operator==(const Refused&, const Refused&) = default;
};
/// That is not known: it has to be asked again.
struct Unclear {
  std::string why;  ///< for people
  friend bool operator==(const Unclear&, const Unclear&) = default;
};
}  // namespace slice_outcome
using SliceOutcome = std::variant<slice_outcome::Made,
                                  slice_outcome::Removed,
                                  slice_outcome::Refused,
                                  slice_outcome::Unclear>;

}  // namespace gflow
