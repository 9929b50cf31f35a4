// SPDX-License-Identifier: Apache-2.0
#include "os/host.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "os/file.h"

namespace gflow::os {
namespace {

/// `name`: with its colon.
Memory told_memory(std::string_view name) {
  const auto text = read_file("/proc/meminfo");
  if (!text) return {};
  for (const std::string_view line : split(*text, '\n')) {
    if (!line.starts_with(name)) continue;
    const std::string_view number = trim(line.substr(name.size(), line.find("kB") - name.size()));
    return Memory{static_cast<std::int64_t>(parse_number(number).value_or(0)) << 10};
  }
  return {};
}

}  // namespace

Memory host_memory() {
  Memory memory = told_memory("MemTotal:");
  // The root of a container's own hierarchy; absent on a host, where the root has no limit.
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const auto text = read_file(path);
    const auto limit = text ? parse_number(trim(*text)) : std::nullopt;
    if (!limit || *limit == 0 || *limit > (std::uint64_t{1} << 60)) continue;
    memory = std::min(memory, Memory{static_cast<std::int64_t>(*limit)});
  }
  return memory;
}

Memory available_memory() { return told_memory("MemAvailable:"); }

std::uint64_t most_open_files() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : RLIM_INFINITY;
}

std::uint64_t open_file_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
}

std::uint64_t raise_open_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  (void)::setrlimit(RLIMIT_NOFILE, &limit);  // as many as before will have to do
  return before;
}

}  // namespace gflow::os
