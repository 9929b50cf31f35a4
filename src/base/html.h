// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gflow {

/// Text as it stands in HTML, within attributes, too.
[[nodiscard]] std::string html_text(std::string_view text);

}  // namespace gflow
