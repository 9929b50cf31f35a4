// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "core/status.h"

namespace gflow::api {

/// How many jobs there are in each state.
struct StatusCounts {
  std::array<std::uint64_t, kStatuses.size()> jobs{};  ///< in the order of kStatuses

  void add(Status status) {
    ++jobs.at(static_cast<std::size_t>(&status_info(status) - kStatuses.data()));
  }
  [[nodiscard]] std::uint64_t of(Status status) const {
    return jobs.at(static_cast<std::size_t>(&status_info(status) - kStatuses.data()));
  }

  friend bool operator==(const StatusCounts&, const StatusCounts&) = default;
};

template <>
inline constexpr std::string_view kSchemaName<StatusCounts> = "StatusCounts";
template <class Io, Like<StatusCounts> T>
void fields(Io& io, T& counts) {
  for (std::size_t i = 0; i < kStatuses.size(); ++i) io.field(kStatuses[i].name, counts.jobs[i]);
}

}  // namespace gflow::api
