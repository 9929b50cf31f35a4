// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace gflow::server {

/// What a header with weights, "gzip;q=0.5, br", gives a word: 1 without one, 0 for a word that is
/// not wanted; empty if it is not among them, the most if it is there more than once. Letters may
/// be large or small.
[[nodiscard]] std::optional<double> weight_in(std::string_view header, std::string_view word);
/// Its words, the most wanted first, without those of weight 0; borrowed.
[[nodiscard]] std::vector<std::string_view> by_weight(std::string_view header);

}  // namespace gflow::server
