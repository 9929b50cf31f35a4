// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "api/types.h"
#include "base/result.h"
#include "command/command.h"
#include "command/context.h"
#include "daemon/options.h"

/// What a gflowd is started with: as typed, as the one before it was, as the one that runs.
namespace gflow::daemon {

/// Errors: --system by who is not root.
[[nodiscard]] Result<Options> options_of(const cli::Invocation& typed);
/// With the files it names as absolute paths: a daemon in the background starts at "/".
[[nodiscard]] cli::Invocation with_absolute_files(cli::Invocation typed);
/// The arguments that make a daemon in the background like this one.
[[nodiscard]] std::vector<std::string> arguments_of(const cli::Invocation& typed);
/// Adds what the gflowd that had this lock last was started with and is not typed now, so that one
/// that was killed comes back as it was. What was added.
[[nodiscard]] std::vector<std::string> add_last_arguments(cli::Invocation& typed,
                                                          const os::Paths& paths);
/// What makes another daemon like the one that runs: its flags and its configuration file; what
/// that says may have changed. Settings it has of its environment are set in ours, unless they are.
[[nodiscard]] Result<cli::Invocation> like(const api::DaemonView& running, cli::Context& context);

}  // namespace gflow::daemon
