// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::os {

/// Replaces what a file holds by `data`, all or nothing whatever ends the process or the machine:
/// it is written beside the file, synced, and moved in its place, with the file's owner and mode. A
/// link stays a link, and what it points to is replaced. `was` is what the file held when `data`
/// was made of it, empty if it was not there. Errors: WrongState if it is not that any more.
[[nodiscard]] Result<void> replace_file(const std::string& path,
                                        std::string_view data,
                                        const std::optional<std::string>& was);

}  // namespace gflow::os
