// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <string>

#include "cli/commands.h"
#include "command/language.h"
#include "command/run_command.h"
#include "os/user.h"

namespace {

/// Who has no HOME is looked up where the machine has its accounts, which takes libraries this
/// program is linked to do without: gflow has them, and is gbatch, too. Returns where there is no
/// gflow beside it.
void become_gflow_without_home(int argc, char** argv) {
  const auto home = gflow::os::environment("HOME");
  if (argc < 1 || (home && home->starts_with('/'))) return;
  std::string name = "gbatch";
  argv[0] = name.data();
  (void)::execv((gflow::os::program_directory() + "/gflow").c_str(), argv);
}

}  // namespace

int main(int argc, char** argv) {
  become_gflow_without_home(argc, argv);
  gflow::cli::choose_language();
  return gflow::cli::run_command(gflow::cli::gbatch_command(), argc, argv);
}
