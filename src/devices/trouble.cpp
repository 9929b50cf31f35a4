// SPDX-License-Identifier: Apache-2.0
#include "devices/trouble.h"

namespace gflow::devices {

void without_readings(Device& device) {
  device.memory_used.reset();
  device.utilization_percent.reset();
  device.temperature_celsius.reset();
  device.power_milliwatts.reset();
  device.power_limit_milliwatts.reset();
  device.processes.clear();
}

}  // namespace gflow::devices
