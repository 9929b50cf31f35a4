// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "command/command.h"
#include "command/context.h"

/// The options by which commands select jobs, where several have the same.
namespace gflow::cli {

/// --user, --me. `heading`: what they stand under in help.
[[nodiscard]] std::vector<Option> owner_options(const std::string& heading = "");
[[nodiscard]] Option names_option(const std::string& heading = "");
[[nodiscard]] Option project_option(const std::string& heading = "");
[[nodiscard]] Option group_option(const std::string& heading = "");

/// Whose jobs --user and --me say; empty for everyone's. Errors: Usage for a list that names
/// nobody.
[[nodiscard]] Result<std::vector<std::string>> chosen_owners(const Invocation& invocation,
                                                             Context& context);

}  // namespace gflow::cli
