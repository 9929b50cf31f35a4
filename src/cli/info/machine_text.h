// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/types.h"
#include "command/terminal.h"

namespace gflow::cli {

/// What ginfo prints: the block per GPU, then allocations by job.
[[nodiscard]] std::string machine_text(const api::MachineView& machine, const Painter& paint);
/// One line per GPU.
[[nodiscard]] std::string machine_brief(const api::MachineView& machine, const Painter& paint);

/// Lines of it that other screens have, too. Where launches fail, and why:
[[nodiscard]] std::string unhealthy_lines(const api::MachineView& machine, const Painter& paint);
/// Why devices are drained whose jobs have not all ended; "" where no reason was given.
[[nodiscard]] std::string draining_lines(const api::MachineView& machine);
/// Of which GPUs a slice of MIG could be made, and which; "" for none.
[[nodiscard]] std::string mig_room_lines(const api::MachineView& machine);
/// Drained devices that are not in the machine now; "" if there are none.
[[nodiscard]] std::string absent_drain_lines(const api::MachineView& machine);
/// That a node has no GPUs, and why.
[[nodiscard]] std::string no_devices(const api::NodeView& node);
/// "Node n1", "Node n1: drained: move".
[[nodiscard]] std::string node_title(const api::NodeView& node);

/// "2 jobs of others": of which is told no more.
[[nodiscard]] std::string other_jobs_text(std::size_t count);
/// "Available", "In use by job 5", "In use outside gflow: pid 4711 (dave) python", "Not usable:
/// ...".
[[nodiscard]] std::string device_status(const api::DeviceView& device);
/// "pid 4711 (dave) python, 2G"
[[nodiscard]] std::string process_text(const DeviceProcess& process);

}  // namespace gflow::cli
