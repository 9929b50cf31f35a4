// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "base/zone.h"
#include "command/command.h"
#include "command/terminal.h"

namespace gflow::cli {

/// Who looks at the machine, when, and how wide the screen is.
struct MachineViewer {
  std::string user;
  WallTime now;
  Zone zone;
  std::size_t columns = 80;  ///< no line of the table is wider
};

/// What ginfo shows on a terminal: a line of counts, a line a GPU with who has it, of how much and
/// until when, what is wrong with nodes, and how many jobs run and wait.
[[nodiscard]] std::string machine_screen(const api::MachineView& machine,
                                         const MachineViewer& viewer,
                                         const Painter& paint);

/// The table of it alone.
[[nodiscard]] std::string gpus_screen(const api::MachineView& machine,
                                      const MachineViewer& viewer,
                                      const Painter& paint);

/// What the words under STATUS mean.
[[nodiscard]] std::vector<Example> gpu_state_legend();

}  // namespace gflow::cli
