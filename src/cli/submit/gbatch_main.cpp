// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cli/commands.h"
#include "command/language.h"
#include "command/run_command.h"

int main(int argc, char** argv) {
  gflow::cli::choose_language();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return gflow::cli::run_command(gflow::cli::gbatch_command(), arguments);
}
