// SPDX-License-Identifier: Apache-2.0
#include "daemon/held_devices.h"

#include <spdlog/spdlog.h>

#include "base/text.h"
#include "runner/attempt_files.h"

namespace gflow::daemon {

std::vector<Device> held_devices(const engine::State& state,
                                 const std::string& attempts_dir,
                                 const std::string& node) {
  std::vector<Device> held;
  for (const Job* job : state.list({.statuses = kActive})) {
    const Attempt& attempt = *attempt_of(*job);
    if (attempt.allocation.node != node || attempt.allocation.gpus.empty()) continue;
    const auto order = runner::AttemptFiles(attempts_dir, job->id, attempt.number).order();
    if (!order) {
      spdlog::warn("which GPUs job {} has is known by index alone: {}",
                   job->id.value,
                   printable(order.error().message));
    }
    if (!order || !*order) continue;
    for (const attempt::Grant& grant : (*order)->devices) {
      Device device;
      device.index = static_cast<int>(grant.index);
      device.vendor = grant.vendor;
      device.model = "GPU";
      device.uuid = grant.uuid;
      if (grant.uuid.starts_with("MIG-")) {
        device.model = "MIG device";
        device.mig = MigDevice{};  // of which GPU is not known
      }
      held.push_back(std::move(device));
    }
  }
  return held;
}

}  // namespace gflow::daemon
