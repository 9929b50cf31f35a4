// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace gflow::cli {

std::vector<Command> suite() {
  std::vector<Command> commands;
  for (const Program& program : kPrograms) commands.push_back(program.command());
  return commands;
}

}  // namespace gflow::cli
