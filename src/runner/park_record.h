// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/memory.h"
#include "core/job.h"

namespace gflow::runner {

/// What is known of the GPU memory of an attempt that is taken to host memory, or was.
struct ParkRecord {
  /// Begun: how its processes stand only the driver can tell. None: all is on its GPU.
  Parking how = Parking::None;
  Memory most{};                         ///< may be taken in all
  std::map<std::string, Memory> by_gpu;  ///< was taken at most, by UUID
  std::string refused;                   ///< why it could not be: that is not tried again
  /// On which GPU all of it is given back, instead of where it was, by UUID; it is not decided
  /// before all is in host memory.
  struct Move {
    std::string from;
    std::string to;
    bool is_back = false;  ///< it could not be, and all comes back to where it was
    std::string why{};     ///< of that
    friend bool operator==(const Move&, const Move&) = default;
  };
  std::optional<Move> move;

  [[nodiscard]] Memory taken() const;
  friend bool operator==(const ParkRecord&, const ParkRecord&) = default;
};

/// How the file begins, into which gflow-park writes (--record).
[[nodiscard]] std::string park_record_head(Memory most);
/// What is written at its end before the first is given back elsewhere, or on the way back.
[[nodiscard]] std::string park_record_line(const ParkRecord::Move& move);
/// The file; a line that is not understood is one that was not written to its end. Of a process
/// that was begun with twice the last line counts.
[[nodiscard]] ParkRecord parse_park_record(std::string_view text);

}  // namespace gflow::runner
