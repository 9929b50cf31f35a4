// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <type_traits>

#include "core/job.h"

/// Enumerators as JSON names them. `all(Kind)` is every value, so that reading is the inverse of
/// writing by construction.
namespace gflow::api {

[[nodiscard]] inline std::string_view json_name(Status status) { return status_name(status); }
[[nodiscard]] inline std::string_view json_name(EndReason reason) {
  return end_reason_name(reason);
}
[[nodiscard]] constexpr std::string_view json_name(DependencyMode mode) {
  return mode == DependencyMode::Any ? "any" : "all";
}

template <typename T>
inline constexpr auto kValues = nullptr;
template <>
inline constexpr std::array<Status, 10> kValues<Status> = {Status::Queued,
                                                           Status::Hold,
                                                           Status::Starting,
                                                           Status::Running,
                                                           Status::Completing,
                                                           Status::Finished,
                                                           Status::Failed,
                                                           Status::Cancelled,
                                                           Status::Timeout,
                                                           Status::Lost};
template <>
inline constexpr std::array<EndReason, 9> kValues<EndReason> = {EndReason::Exited,
                                                                EndReason::Signalled,
                                                                EndReason::TimeLimit,
                                                                EndReason::Cancelled,
                                                                EndReason::OutOfMemory,
                                                                EndReason::LaunchFailed,
                                                                EndReason::SupervisorDied,
                                                                EndReason::Rebooted,
                                                                EndReason::DependencyFailed};
template <>
inline constexpr std::array<DependencyMode, 2> kValues<DependencyMode> = {DependencyMode::All,
                                                                          DependencyMode::Any};

}  // namespace gflow::api
