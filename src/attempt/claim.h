// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace gflow::attempt {

/// Version of what a shim leaves in the directory of an attempt, which a later daemon reads.
constexpr std::uint32_t kClaimProtocol = 2;
/// Since this one the pid behind the exit record is there before the program runs, not after.
constexpr std::uint32_t kNotesBeforeProgram = 2;

/// The shim took the attempt: from here on it may run, and whoever comes later must not start it.
struct ShimClaim {
  std::uint32_t protocol = 0;  ///< 0: not known
  std::int32_t pid = 0;
  std::uint64_t start_time =
      0;  ///< field 22 of /proc/<pid>/stat: with pid and boot it names one process
  std::string boot_id;

  friend bool operator==(const ShimClaim&, const ShimClaim&) = default;
};
/// The daemon took it back before a shim had claimed it: it can never run.
struct Revoked {
  friend bool operator==(const Revoked&, const Revoked&) = default;
};
/// Content of the file `claim`, made by link(2) so that exactly one of the two wins.
using Claim = std::variant<ShimClaim, Revoked>;

[[nodiscard]] std::string encode_claim(const Claim& claim);
/// Empty if the text is no claim.
[[nodiscard]] std::optional<Claim> decode_claim(std::string_view text);

/// What the shim says over its status pipe, one line each.
struct ShimStarted {
  std::int32_t pid = 0;  ///< the program of the job runs
  friend bool operator==(const ShimStarted&, const ShimStarted&) = default;
};
struct ShimFailed {
  std::string message;  ///< it gave up before it claimed the attempt
  int error = 0;        ///< errno; 0 if there is none
  friend bool operator==(const ShimFailed&, const ShimFailed&) = default;
};
using StatusLine = std::variant<ShimStarted, ShimFailed>;

[[nodiscard]] std::string encode_status(const StatusLine& line);
/// `line` without its line end. Empty if it is not understood.
[[nodiscard]] std::optional<StatusLine> decode_status(std::string_view line);

}  // namespace gflow::attempt
