// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace gflow {

/// Who may have how many of the open files of gflowd (`ulimit -n`), so that none of them takes what
/// another needs: jobs start however many connections are idle, and commands are answered however
/// many jobs run.
struct FileBudget {
  std::size_t jobs = 0;     ///< three while one runs, a few more while it starts
  std::size_t watches = 0;  ///< processes that allocations in the queue are for
  std::size_t clients = 0;  ///< connections, and the logs they read
  std::size_t logs = 0;     ///< of these: so many are read at once, as most connections read none

  friend bool operator==(const FileBudget&, const FileBudget&) = default;
};
/// Of a limit, without what gflowd itself has open.
[[nodiscard]] FileBudget file_budget(std::uint64_t limit);

/// With fewer than so many gflowd does not start.
inline constexpr std::uint64_t kLeastFiles = 128;

}  // namespace gflow
