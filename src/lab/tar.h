// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace gflow::lab {

/// The content of a file in a tar archive (POSIX ustar), or nothing if it is not there.
[[nodiscard]] std::optional<std::string_view> tar_member(std::string_view archive,
                                                         std::string_view name);

}  // namespace gflow::lab
