// SPDX-License-Identifier: Apache-2.0
#include "cli/job/signals.h"

#include <fmt/format.h>

#include <csignal>
#include <utility>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

Result<int> parse_signal(std::string_view text) {
  constexpr std::pair<std::string_view, int> kNames[] = {{"hup", SIGHUP},
                                                         {"int", SIGINT},
                                                         {"quit", SIGQUIT},
                                                         {"kill", SIGKILL},
                                                         {"usr1", SIGUSR1},
                                                         {"usr2", SIGUSR2},
                                                         {"term", SIGTERM},
                                                         {"alrm", SIGALRM},
                                                         {"cont", SIGCONT},
                                                         {"stop", SIGSTOP},
                                                         {"tstp", SIGTSTP},
                                                         {"abrt", SIGABRT},
                                                         {"winch", SIGWINCH}};
  std::string name = to_lower(trim(text));
  if (name.starts_with("sig")) name = name.substr(3);
  for (const auto& [known, number] : kNames) {
    if (name == known) return number;
  }
  const auto number = parse_number(name);
  if (number && *number > 0 && *number <= static_cast<std::uint64_t>(SIGRTMAX)) {
    return static_cast<int>(*number);
  }
  return fail(
      Code::Usage,
      tr_format("'{}' is not a signal; write TERM, INT, USR1, KILL or a number", printable(text)));
}

}  // namespace gflow::cli
