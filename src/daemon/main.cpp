// SPDX-License-Identifier: Apache-2.0
#include <sys/prctl.h>

#include <csignal>

#include "command/language.h"
#include "command/run_command.h"
#include "daemon/commands.h"

int main(int argc, char** argv) {
  // The daemon in the background is started through /proc/self/exe, and would be called "exe".
  (void)::prctl(PR_SET_NAME, "gflowd");
  // A client that goes away while it is answered is no reason to end.
  (void)std::signal(SIGPIPE, SIG_IGN);
  gflow::cli::choose_language();
  return gflow::cli::run_command(gflow::daemon::gflowd_command(), argc, argv);
}
