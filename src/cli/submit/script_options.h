// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "command/command.h"
#include "core/gpu_request.h"

namespace gflow::cli {

/// What a script asks for in its directives.
struct ScriptOptions {
  Invocation invocation;             ///< "#SBATCH" lines, then "# GFLOW" ones, which win
  std::vector<std::string> ignored;  ///< options of "#SBATCH" lines gflow has nothing for
};

/// Reads the directives of a script by gbatch's own table.
/// Errors: Usage beginning with "script.sh:3: " for one that is not understood.
[[nodiscard]] Result<ScriptOptions> script_options(const Command& gbatch,
                                                   const std::string& path,
                                                   std::string_view script,
                                                   const GpuResources& resources);

/// Takes over what the script says and the command line does not: options of the command line win,
/// also over ones they exclude.
void take_over(Invocation& invocation, const Invocation& script);

}  // namespace gflow::cli
