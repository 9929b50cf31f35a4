// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

/// Where a page of a list ended, as a word to be sent back: what the last entry was sorted by, not
/// how many there were before it, so that what comes and goes meanwhile moves nothing. Readers need
/// not know what is in it.
namespace gflow::api {

/// Letters, digits, '-' and '_', with a letter at its begin: it is no number.
[[nodiscard]] std::string write_cursor(std::span<const std::string> parts);
/// Errors: Usage for what write_cursor() did not write.
[[nodiscard]] Result<std::vector<std::string>> read_cursor(std::string_view text);

}  // namespace gflow::api
