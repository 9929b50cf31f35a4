// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

namespace gflow::os {

/// So many bytes nobody can guess, as lower-case hex digits.
[[nodiscard]] std::string random_hex(std::size_t bytes);

}  // namespace gflow::os
