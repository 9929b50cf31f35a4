// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

namespace gflow::server {

/// What a header with weights, "gzip;q=0.5, br", gives a word: 1 without one, 0 for a word that is
/// not wanted; empty if it is not among them. Letters may be large or small.
[[nodiscard]] std::optional<double> weight_in(std::string_view header, std::string_view word);

}  // namespace gflow::server
