// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gflow::os {

/// Who may have how many of the open files of gflowd (`ulimit -n`), so that none of them takes what
/// another needs: jobs start however many connections are idle, and commands are answered however
/// many jobs run.
struct FileBudget {
  std::size_t jobs = 0;     ///< two while one runs, a few more while it starts
  std::size_t watches = 0;  ///< processes that allocations in the queue are for, up to two each
  std::size_t clients = 0;  ///< connections, and the logs they read
  std::size_t logs = 0;     ///< of these: so many are read at once, as most connections read none
};
/// Of the limit there is now, without what gflowd itself has open.
[[nodiscard]] FileBudget file_budget();

/// Files gflowd has open by itself: the store, the loop and its threads.
inline constexpr std::size_t kOwnFiles = 48;
/// With fewer than so many it does not start.
inline constexpr std::size_t kLeastFiles = 128;

}  // namespace gflow::os
