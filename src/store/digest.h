// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gflow::store {

/// Size and hash of a file, in one word. Notices damage, not forgery: one changed byte, wherever it
/// is, gives another digest. Reads it whole, at about the speed of memory.
[[nodiscard]] Result<std::string> digest_of_file(const std::string& path);

}  // namespace gflow::store
