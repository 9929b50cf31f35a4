// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "api/types.h"
#include "base/result.h"
#include "command/context.h"

namespace gflow::cli {

/// What of a log is printed: all of it where no number of lines is given.
struct LogWish {
  std::optional<std::size_t> first;
  std::optional<std::size_t> last;
  client::Follow follow = client::Follow::No;
};

/// Where in a file the last `lines` lines begin.
[[nodiscard]] Result<std::size_t> start_of_last_lines(const std::string& path, std::size_t lines);
/// Where in a block of text the last `lines` lines begin; nothing if that is before it, and `lines`
/// is how many are still to be looked for there. `is_last`: nothing follows the block.
[[nodiscard]] std::optional<std::size_t> back_over_lines(std::string_view block,
                                                         bool is_last,
                                                         std::size_t& lines);

/// "Waiting for job 5 to start: Resources".
[[nodiscard]] std::string waits_to_start(const api::JobView& job);

/// The log of a job of another machine, as its gflowd sends it. A connection that is cut meanwhile
/// is said, and made anew.
[[nodiscard]] Result<void> print_remote_log(Context& context, JobId id, const LogWish& wish);

}  // namespace gflow::cli
