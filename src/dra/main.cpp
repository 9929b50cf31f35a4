// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "command/language.h"
#include "command/run_command.h"
#include "dra/command.h"

int main(int argc, char** argv) {
  // A server that goes away while it is asked is no reason to end.
  (void)std::signal(SIGPIPE, SIG_IGN);
  gflow::cli::choose_language();
  return gflow::cli::run_command(gflow::dra::dra_driver_command(), argc, argv);
}
