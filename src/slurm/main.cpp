// SPDX-License-Identifier: Apache-2.0
// gflow-slurm, which 'gqueue --server slurm' and other commands start for themselves.
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "base/translate.h"
#include "command/language.h"
#include "slurm/serve.h"

int main() {
  // A reader that goes away while it is answered is no reason to end.
  (void)std::signal(SIGPIPE, SIG_IGN);
  gflow::cli::choose_language();
  int kind = 0;
  socklen_t size = sizeof kind;
  if (::getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &kind, &size) != 0) {
    std::cerr << gflow::tr("gflow-slurm is started by commands: 'gqueue --server slurm'") << '\n';
    return 2;
  }
  return gflow::slurm::serve_api() ? 0 : 1;
}
