// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/memory.h"

namespace gflow {

/// Memory slices of a GPU with MIG, a bit each: what a GPU instance takes are some in a row.
using MigSlots = std::uint32_t;
/// More than any GPU has: eight of most, four of an A30.
constexpr int kMaxMigSlots = 12;
[[nodiscard]] constexpr MigSlots mig_slots(int start, int size) {
  return ((MigSlots{1} << size) - 1) << start;
}

/// What a GPU can be cut into, as its driver tells.
struct MigKind {
  std::string profile;      ///< of a whole GPU instance: "3g.40gb"
  int size = 0;             ///< memory slices of one
  std::vector<int> starts;  ///< with which of them one may begin, ascending
  int most = 0;             ///< of them at once
  Memory memory{};          ///< of one

  friend bool operator==(const MigKind&, const MigKind&) = default;
};

/// A GPU instance that there is, whoever made it, with or without compute instances.
struct MigInstance {
  int id = 0;  ///< used again by the driver
  std::string profile;
  int start = 0;
  int size = 0;

  [[nodiscard]] MigSlots slots() const { return mig_slots(start, size); }
  friend bool operator==(const MigInstance&, const MigInstance&) = default;
};

/// A GPU with MIG enabled, and what of it is cut.
struct MigGpu {
  std::string uuid;
  std::string model;  ///< as the driver reports it
  std::vector<MigKind> kinds;
  std::vector<MigInstance> instances;  ///< by start
  std::string unread;  ///< why it is not known what it can be cut into; "" where it is

  friend bool operator==(const MigGpu&, const MigGpu&) = default;
};

/// Null if it cannot be cut into that.
[[nodiscard]] inline const MigKind* kind_of(const MigGpu& gpu, const std::string& profile) {
  for (const MigKind& kind : gpu.kinds) {
    if (kind.profile == profile) return &kind;
  }
  return nullptr;
}

/// What a driver calls such a slice: "NVIDIA H100 80GB HBM3 MIG 3g.40gb".
[[nodiscard]] inline std::string slice_name(const std::string& gpu, const std::string& profile) {
  return gpu + " MIG " + profile;
}

}  // namespace gflow
