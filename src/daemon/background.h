// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"

namespace gflow::daemon {

/// Starts this very program again in a session of its own, detached from terminal and directory,
/// and waits until it says that it answers. Errors: what it says instead, or wrote to its standard
/// error; `log` is named where it says nothing. Where it takes longer than a person waits in
/// silence, `say` is told which process is waited for.
[[nodiscard]] Result<void> start_in_background(std::vector<std::string> arguments,
                                               const std::string& log,
                                               const std::function<void(int pid)>& say);

/// Says to the one who waits that this daemon answers, or the error because of which it does not.
/// With the former its standard error is read no more, and goes nowhere.
/// One who has gone need not know. Errors: it could not be said, so that it is taken for one that
/// failed.
[[nodiscard]] Result<void> tell_starter(int ready_fd, const Error* error);

}  // namespace gflow::daemon
