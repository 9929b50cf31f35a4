// SPDX-License-Identifier: Apache-2.0
#include "os/numa.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>

#include "base/text.h"
#include "os/file.h"

namespace gflow::os {

std::vector<NumaNode> numa_nodes(const std::string& directory) {
  std::vector<NumaNode> nodes;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    constexpr std::string_view kPrefix = "node";
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    const auto number = parse_number(std::string_view(name).substr(kPrefix.size()));
    const auto cpus = read_file(entry.path() / "cpulist");
    if (!number || !cpus) continue;
    nodes.push_back({static_cast<int>(*number), std::string(trim(*cpus))});
  }
  std::ranges::sort(nodes, {}, &NumaNode::node);
  return nodes;
}

std::vector<int> allowed_cpus() {
  // The kernel refuses a mask shorter than its own; nobody has this many CPUs.
  constexpr int kMax = 1 << 16;
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  for (int count = 1024; count <= kMax; count *= 2) {
    const std::unique_ptr<cpu_set_t, Free> set(CPU_ALLOC(static_cast<std::size_t>(count)));
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    if (set == nullptr) return {};
    CPU_ZERO_S(size, set.get());
    if (::sched_getaffinity(0, size, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), size, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

}  // namespace gflow::os
