// SPDX-License-Identifier: Apache-2.0
#include "os/usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/text.h"
#include "os/file.h"

namespace gflow::os {

Usage own_usage() {
  Usage usage;
  struct rusage facts{};
  if (::getrusage(RUSAGE_SELF, &facts) == 0) {
    constexpr double kMicro = 1e-6;
    usage.cpu_seconds =
        static_cast<double>(facts.ru_utime.tv_sec + facts.ru_stime.tv_sec) +
        kMicro * static_cast<double>(facts.ru_utime.tv_usec + facts.ru_stime.tv_usec);
  }
  if (const auto pages = read_file("/proc/self/statm")) {
    const auto parts = split(*pages, ' ');
    const auto resident = parts.size() > 1 ? parse_number(parts[1]) : std::nullopt;
    if (resident) {
      usage.resident = Memory{static_cast<std::int64_t>(*resident) * ::sysconf(_SC_PAGESIZE)};
    }
  }
  return usage;
}

}  // namespace gflow::os
