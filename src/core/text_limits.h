// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// How long the texts of a job and of a drain may be, in bytes: each is kept in memory for each of
/// them and shown in every list. What is run is not among them.
namespace gflow {

constexpr std::size_t kMaxCommand = 16 * 1024;  ///< the line for people, not what is run
constexpr std::size_t kMaxName = 512;           ///< 128 characters
constexpr std::size_t kMaxGroup = 256;
constexpr std::size_t kMaxProject = 256;  ///< kMaxProjectCharacters
constexpr std::size_t kMaxProjectCharacters = 64;
constexpr std::size_t kMaxReason = 1024;  ///< of a drain
constexpr std::size_t kMaxPath = 4096;    ///< PATH_MAX
constexpr std::size_t kMaxLabel = 256;    ///< a key or a value, a vendor or a model
constexpr std::size_t kMaxLabels = 64;

}  // namespace gflow
