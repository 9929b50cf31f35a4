// SPDX-License-Identifier: Apache-2.0
#include "daemon/device_news.h"

#include "base/text.h"
#include "daemon/log.h"

namespace gflow::daemon {

void DeviceNews::see(const Machine& reading, const GpuConfig& config) {
  constexpr Share kUsual = Share::percent(5);
  const auto changes = changes_.see(reading, config.resource_change_threshold.value_or(kUsual));
  const auto level = config.resource_change_threshold ? spdlog::level::info : spdlog::level::debug;
  for (const DeviceChange& change : changes) {
    device_log().log(level, "{}", printable(change_text(change)));
    if (tell_) tell_(change);
  }
  device_log().debug("{} GPUs read, {} changes", reading.devices.size(), changes.size());
}

}  // namespace gflow::daemon
