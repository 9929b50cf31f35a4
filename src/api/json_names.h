// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/blocker.h"
#include "core/gpu_limits.h"
#include "core/job.h"
#include "core/machine.h"
#include "core/principal.h"
#include "core/topology.h"

/// Enumerators as JSON names them. `all(Kind)` is every value, so that reading is the inverse of
/// writing by construction.
namespace gflow::api {

[[nodiscard]] inline std::string_view json_name(Status status) { return status_name(status); }
[[nodiscard]] inline std::string_view json_name(EndReason reason) {
  return end_reason_name(reason);
}
[[nodiscard]] constexpr std::string_view json_name(GpuLimit limit) { return gpu_limit_name(limit); }
[[nodiscard]] inline std::string_view json_name(GpuMode mode) { return gpu_mode_name(mode); }
[[nodiscard]] inline std::string_view json_name(Preemption preemption) {
  return preemption_name(preemption);
}
[[nodiscard]] inline std::string_view json_name(PathClass path) { return path_class_name(path); }
[[nodiscard]] constexpr std::string_view json_name(DependencyMode mode) {
  return mode == DependencyMode::Any ? "any" : "all";
}

[[nodiscard]] constexpr std::string_view json_name(BlockerKind kind) {
  return blocker_kind_name(kind);
}

[[nodiscard]] constexpr std::string_view json_name(DeviceBar bar) { return device_bar_name(bar); }

[[nodiscard]] inline std::string_view json_name(Scope scope) { return scope_name(scope); }

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
inline constexpr std::array<DeviceBar, 4> kValues<DeviceBar> = {
    DeviceBar::None, DeviceBar::Broken, DeviceBar::Drained, DeviceBar::InUse};
template <>
inline constexpr std::array<EndReason, 10> kValues<EndReason> = {EndReason::Exited,
                                                                 EndReason::Signalled,
                                                                 EndReason::TimeLimit,
                                                                 EndReason::Cancelled,
                                                                 EndReason::OutOfMemory,
                                                                 EndReason::LaunchFailed,
                                                                 EndReason::SupervisorDied,
                                                                 EndReason::Rebooted,
                                                                 EndReason::DependencyFailed,
                                                                 EndReason::Preempted};
template <>
inline constexpr std::array<PathClass, kPathClasses> kValues<PathClass> = {PathClass::Same,
                                                                           PathClass::Pix,
                                                                           PathClass::Pxb,
                                                                           PathClass::Phb,
                                                                           PathClass::Node,
                                                                           PathClass::Sys};
template <>
inline constexpr std::array<GpuLimit, 2> kValues<GpuLimit> = {GpuLimit::None, GpuLimit::Interposer};
template <>
inline constexpr std::array<GpuMode, 3> kValues<GpuMode> = {
    GpuMode::Whole, GpuMode::Fraction, GpuMode::TimeSlice};
template <>
inline constexpr std::array<Preemption, 3> kValues<Preemption> = {
    Preemption::None, Preemption::Requeue, Preemption::Suspend};
template <>
inline constexpr std::array<DependencyMode, 2> kValues<DependencyMode> = {DependencyMode::All,
                                                                          DependencyMode::Any};

template <>
inline constexpr std::array<Scope, 4> kValues<Scope> = {
    Scope::Read, Scope::Submit, Scope::Operate, Scope::Admin};

}  // namespace gflow::api
