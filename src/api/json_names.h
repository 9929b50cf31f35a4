// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/blocker.h"
#include "core/defrag_plan.h"
#include "core/gpu_limits.h"
#include "core/job.h"
#include "core/machine.h"
#include "core/principal.h"
#include "core/topology.h"

/// Enumerators as JSON names them. `kValues<T>` is every one of a type, made of their names, so
/// that reading is the inverse of writing: one without a name does not compile.
namespace gflow::api {

[[nodiscard]] inline std::string_view json_name(Status status) { return status_name(status); }
[[nodiscard]] constexpr std::string_view json_name(EndReason reason) {
  return end_reason_name(reason);
}
[[nodiscard]] constexpr std::string_view json_name(GpuLimit limit) { return gpu_limit_name(limit); }
[[nodiscard]] constexpr std::string_view json_name(GpuIsolation isolation) {
  return gpu_isolation_name(isolation);
}
[[nodiscard]] constexpr std::string_view json_name(Parking parking) {
  return parking_name(parking);
}
[[nodiscard]] constexpr std::string_view json_name(GpuMode mode) { return gpu_mode_name(mode); }
[[nodiscard]] constexpr std::string_view json_name(Preemption preemption) {
  return preemption_name(preemption);
}
[[nodiscard]] constexpr std::string_view json_name(PathClass path) { return path_class_name(path); }
[[nodiscard]] constexpr std::string_view json_name(DependencyMode mode) {
  switch (mode) {
    case DependencyMode::All:
      return "all";
    case DependencyMode::Any:
      return "any";
  }
  return "unknown";
}

[[nodiscard]] constexpr std::string_view json_name(BlockerKind kind) {
  return blocker_kind_name(kind);
}

[[nodiscard]] constexpr std::string_view json_name(DefragOutcome outcome) {
  return defrag_outcome_name(outcome);
}

[[nodiscard]] constexpr std::string_view json_name(DeviceBar bar) { return device_bar_name(bar); }

[[nodiscard]] constexpr std::string_view json_name(Scope scope) { return scope_name(scope); }

/// Those of T that have a name, in the order of their numbers. json_name() of T is a switch over
/// all of them, without a default, and "unknown" behind it.
template <typename T>
[[nodiscard]] consteval auto named() {
  constexpr int kNumbers = 64;
  constexpr auto kIsNamed = [](int number) {
    return json_name(static_cast<T>(number)) != "unknown";
  };
  static_assert(!kIsNamed(kNumbers));
  constexpr std::size_t kCount = [=] {
    std::size_t count = 0;
    for (int number = 0; number < kNumbers; ++number) count += kIsNamed(number) ? 1U : 0U;
    return count;
  }();
  std::array<T, kCount> values{};
  std::size_t next = 0;
  for (int number = 0; number < kNumbers; ++number) {
    if (kIsNamed(number)) values.at(next++) = static_cast<T>(number);
  }
  return values;
}

template <typename T>
inline constexpr auto kValues = nullptr;
template <>
inline constexpr std::array<Status, kStatuses.size()> kValues<Status> = [] {
  std::array<Status, kStatuses.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = kStatuses[i].status;
  return all;
}();
template <>
inline constexpr std::array<BlockerKind, kBlockerKinds.size()> kValues<BlockerKind> = [] {
  std::array<BlockerKind, kBlockerKinds.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<BlockerKind>(i);
  return all;
}();
template <>
inline constexpr auto kValues<DefragOutcome> = kDefragOutcomes;
template <>
inline constexpr auto kValues<DeviceBar> = named<DeviceBar>();
template <>
inline constexpr auto kValues<EndReason> = named<EndReason>();
template <>
inline constexpr auto kValues<PathClass> = named<PathClass>();
template <>
inline constexpr auto kValues<GpuLimit> = named<GpuLimit>();
template <>
inline constexpr auto kValues<GpuIsolation> = named<GpuIsolation>();
template <>
inline constexpr auto kValues<Parking> = named<Parking>();
template <>
inline constexpr auto kValues<GpuMode> = named<GpuMode>();
template <>
inline constexpr auto kValues<Preemption> = named<Preemption>();
template <>
inline constexpr auto kValues<DependencyMode> = named<DependencyMode>();
template <>
inline constexpr auto kValues<Scope> = named<Scope>();
static_assert(kValues<PathClass>.size() == kPathClasses);

}  // namespace gflow::api
