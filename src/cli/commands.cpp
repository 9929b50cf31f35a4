// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace gflow::cli {

const std::vector<Command>& suite() {
  static const std::vector<Command> programs = {gbatch_command(),
                                                gqueue_command(),
                                                ginfo_command(),
                                                gcancel_command(),
                                                gjob_command(),
                                                gctl_command()};
  return programs;
}

}  // namespace gflow::cli
