// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/submit/environment.h"
#include "command/command.h"
#include "command/context.h"

namespace gflow::cli {

/// What is to be run, read from the words, from --wrap or from standard input.
struct Source {
  std::vector<std::string> argv;
  std::optional<std::string> script;  ///< its content
  std::string path;                   ///< of the script, for messages
  std::string line;                   ///< one line for people
};
/// Whether the job runs where programs can be looked for.
enum class Programs { Here, Elsewhere };
/// `environment` says which PATH programs are looked for in.
[[nodiscard]] Result<Source> read_source(const Invocation& invocation,
                                         const Environment& environment,
                                         Programs programs);

/// Writes a script to start from: NAME.sh. Errors: WrongState if there is one already.
[[nodiscard]] Result<int> write_new_script(const Invocation& invocation, Context& context);

}  // namespace gflow::cli
