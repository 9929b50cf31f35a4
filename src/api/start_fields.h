// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include "api/expected_start.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"

/// The fields of an expected start, in whatever document it stands. Not for other modules.
namespace gflow::api {

template <>
inline constexpr std::array<StartBy, 4> kValues<StartBy> = {
    StartBy::TimeLimits, StartBy::BeginTime, StartBy::RunTimes, StartBy::NotBefore};

[[nodiscard]] constexpr std::string_view json_name(StartBy by) {
  switch (by) {
    case StartBy::TimeLimits:
      return "time_limits";
    case StartBy::BeginTime:
      return "begin_time";
    case StartBy::NotBefore:
      return "not_before";
    case StartBy::RunTimes:
      break;
  }
  return "run_times";
}

template <>
inline constexpr std::string_view kSchemaName<ExpectedStart> = "ExpectedStart";
template <class Io, Like<ExpectedStart> T>
void fields(Io& io, T& start) {
  io.required("at", start.at);
  io.field("by", start.by);
}

}  // namespace gflow::api
