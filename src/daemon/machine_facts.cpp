// SPDX-License-Identifier: Apache-2.0
#include "daemon/machine_facts.h"

#include <fmt/format.h>

#include "os/file.h"
#include "os/host.h"
#include "os/user.h"

namespace gflow::daemon {

Machine machine_for_engine(const Machine& reading, const runner::Runner& runner) {
  Machine machine = reading;
  if (!machine.cpus) machine.cpus = os::cpu_count();
  if (!machine.memory) machine.memory = os::host_memory();
  // Processes of a simulated machine are not in this machine's process table.
  const bool real = !machine.source.starts_with("sim:");
  for (Device& device : machine.devices) {
    std::erase_if(device.processes, [&](const DeviceProcess& process) {
      const bool gone = real && !os::exists(fmt::format("/proc/{}", process.pid));
      return gone || runner.owner_of(process.pid).has_value();
    });
  }
  return machine;
}

}  // namespace gflow::daemon
