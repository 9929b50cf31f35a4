// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "core/device_change.h"
#include "core/gpu_config.h"

namespace gflow::daemon {

/// What readings of the devices say that is new, by resource_change_threshold of gpu_config.yaml
/// (without it 5%): the one place from which the log and whoever else wants to know has it. In the
/// log it is 'info' where a threshold is configured, else 'debug', so that a busy machine does not
/// fill it unasked.
class DeviceNews {
 public:
  using Tell = std::function<void(const DeviceChange&)>;

  /// Called for each change, on the thread that sees it.
  void on_change(Tell tell) { tell_ = std::move(tell); }
  void see(const Machine& reading, const GpuConfig& config);

 private:
  DeviceChanges changes_;
  Tell tell_;
};

}  // namespace gflow::daemon
