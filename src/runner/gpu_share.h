// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/launch.h"
#include "share/account_file.h"

/// How an attempt is held to its part of a GPU: by an account in its directory, and by
/// libgflow-share.so in its programs, which keeps it.
namespace gflow::runner {

/// The limits of an attempt's account; none if it has whole GPUs, does not use them itself, or has
/// ones of which there is nothing to be kept: no memory is set aside, their vendor is not NVIDIA,
/// or they have no UUID.
[[nodiscard]] std::vector<share::DeviceLimit> device_limits(const LaunchOrder& order);

/// A file by which those with a part of one device's time use it one at a time.
struct TurnFile {
  std::string file;  ///< its name where all of them find it, beside the attempts
  std::string name;  ///< beside the account
  friend bool operator==(const TurnFile&, const TurnFile&) = default;
};
/// Those of an attempt, of each of its devices; none if it has all of one's time.
[[nodiscard]] std::vector<TurnFile> turns_of(const std::vector<share::DeviceLimit>& limits);

/// Whether a library of this path can be named in LD_PRELOAD, where spaces and colons separate.
[[nodiscard]] bool can_be_preloaded(const std::string& library);

/// Why programs of this user cannot load the library, as the kernel tells it: for a moment a thread
/// has the user's rights and does what ld.so does. "" if they can.
[[nodiscard]] std::string why_not_loadable(const std::string& library, std::uint32_t uid);

/// The environment of a job whose programs load the library, after the libraries its user asked
/// for, and find the account in this directory.
[[nodiscard]] std::vector<std::string> with_interposer(std::vector<std::string> environment,
                                                       const std::string& library,
                                                       const std::string& directory);

/// The same without what a job that was submitted from within a job inherited of that.
[[nodiscard]] std::vector<std::string> without_interposer(std::vector<std::string> environment);

}  // namespace gflow::runner
