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
  bool meters = false;       ///< utilization is drawn, too, where there is room
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

/// What is wrong with nodes, the line of counts and the table, on so many lines: what has no room
/// is counted in the last one; of a table with room for no GPU nothing is shown.
[[nodiscard]] std::string machine_panel(const api::MachineView& machine,
                                        const MachineViewer& viewer,
                                        std::size_t rows,
                                        const Painter& paint);

/// What the words under STATUS mean.
[[nodiscard]] std::vector<Example> gpu_state_legend();

}  // namespace gflow::cli
