// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "share/account.h"

namespace gflow::share {

/// The name of the account in the directory that GFLOW_SHARE_DIR names.
constexpr const char* kAccountName = "account";
/// Beside it, where a job has one device of which others have parts, too: a file of the device that
/// is in the directory of each, and locked by who uses the device.
constexpr const char* kTurnName = "turn";

/// Beside the account of a job with whole GPUs: a named pipe that gflowd reads, into which one of
/// its processes writes a byte when the GPU is lent and wanted back.
constexpr const char* kWantedName = "wanted";

/// Beside an account whose processes may be of several pid namespaces, and so cannot judge each
/// other: the EndedProcesses of its slots, by whoever sees all of them. Nobody else writes it.
constexpr const char* kEndedName = "ended";

struct DeviceLimit {
  std::string uuid;  ///< as NVML writes it
  std::uint64_t bytes = 0;
  std::uint64_t share = kWholeShare;        ///< of its time, in 10,000ths
  std::uint64_t share_limit = kWholeShare;  ///< the most of it, no less than `share`

  friend bool operator==(const DeviceLimit&, const DeviceLimit&) = default;
};

/// The bytes of a new file of EndedProcesses: nobody has ended.
[[nodiscard]] std::string encode_ended();

/// The bytes of a new account: nobody has anything, and nothing is lent. Without devices it is that
/// of a job with whole GPUs. Errors, in words: more devices than an account
/// holds, or a UUID that is none.
[[nodiscard]] std::expected<std::string, std::string> encode_account(
    const std::vector<DeviceLimit>& devices);

}  // namespace gflow::share
