// SPDX-License-Identifier: Apache-2.0
#include "runner/isolation.h"

#include <fmt/format.h>
#include <linux/landlock.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <system_error>

namespace gflow::runner {

static_assert(gpu_isolation_name(GpuIsolation::Filter) == attempt::kByFilter);
static_assert(gpu_isolation_name(GpuIsolation::Landlock) == attempt::kByLandlock);

Result<std::string> isolation_by(GpuIsolation wanted, const Cgroups& cgroups) {
  if (wanted == GpuIsolation::Filter) return cgroups.device_filter();
  // Before its second version nothing could be renamed from one directory to another.
  constexpr long kVersion = 2;
  const long version =
      ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  if (version >= kVersion) return std::string(gpu_isolation_name(wanted));
  return fail(Code::Failure,
              version < 0 ? "landlock: " + std::generic_category().message(errno)
                          : fmt::format("version {} of landlock is too old", version));
}

std::string_view isolation_advice(GpuIsolation wanted) {
  return wanted == GpuIsolation::Filter
             ? "it needs root, control groups and bpf(2) or cgroup v1; \"landlock\" does not"
             : "it needs Linux 5.19 with Landlock; \"filter\" needs root instead";
}

GpuIsolation isolation_of(const attempt::Order& order) {
  if (order.isolation == attempt::kByFilter) return GpuIsolation::Filter;
  return order.isolation == attempt::kByLandlock ? GpuIsolation::Landlock : GpuIsolation::None;
}

}  // namespace gflow::runner
