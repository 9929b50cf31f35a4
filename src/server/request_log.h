// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/time.h"
#include "server/guest.h"
#include "server/terms.h"

namespace gflow::server {

/// What the daemon's log tells of requests that were refused or failed: a line each, but no more
/// than one a second on the long run, so that nobody fills the disk by asking for what there is
/// not.
class RequestLog {
 public:
  /// The line, or empty if too many were told lately; the next one tells how many were left out.
  [[nodiscard]] std::optional<std::string> line(MonoTime now,
                                                const Guest& guest,
                                                const Terms& terms,
                                                int status);

 private:
  static constexpr int kAtOnce = 50;

  int credit_ = kAtOnce;
  std::optional<MonoTime> counted_;  ///< until when credit was given
  std::uint64_t left_out_ = 0;
};

}  // namespace gflow::server
