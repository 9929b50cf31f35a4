// SPDX-License-Identifier: Apache-2.0
#include "config/other_gflow.h"

#include <algorithm>
#include <array>

namespace gflow::config {
namespace {

constexpr std::array kOtherKeys = {
    OtherKey{"timezone", "", ""},
    OtherKey{"daemon.host", "", "gflowd listens on a unix socket"},
    OtherKey{"daemon.port", "", "gflowd listens on a unix socket"},
    OtherKey{"daemon.gpus", "", "'gctl drain gpu N' keeps a GPU back"},
    OtherKey{"daemon.gpu_allocation_strategy", "", "see policy in [placement]"},
    OtherKey{"daemon.gpu_poll_interval_secs", kMonitorInterval, ""},
    OtherKey{"daemon.fair_share", "", ""},
    OtherKey{"executor", "", ""},
    OtherKey{"projects", "", ""},
    OtherKey{"quota.default_user.max_queued_jobs", "limits.max_queued_per_user", ""},
    OtherKey{"quota.default_user.max_running_gpus", "limits.max_gpus_per_user", ""},
    OtherKey{"quota.users", "", "see max_gpus_of in [limits]"},
    OtherKey{"quota", "", ""},
    OtherKey{"notifications", "", ""},
};

}  // namespace

std::optional<OtherKey> other_key(std::string_view name) {
  const auto found = std::ranges::find_if(kOtherKeys, [&](const OtherKey& key) {
    return name == key.name || (name.starts_with(key.name) && name[key.name.size()] == '.');
  });
  return found == kOtherKeys.end() ? std::nullopt : std::optional(*found);
}

}  // namespace gflow::config
