// SPDX-License-Identifier: Apache-2.0
#include "server/descriptors.h"

#include <sys/resource.h>

#include <algorithm>

namespace gflow::server {

std::size_t descriptors_for_clients() {
  constexpr std::size_t kOfItself = 48;  // the store, the loop and its threads
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return (limit.rlim_cur - std::min<std::size_t>(kOfItself, limit.rlim_cur)) / 2;
}

std::size_t descriptors_for_logs() { return descriptors_for_clients() / 4; }

}  // namespace gflow::server
