// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lab/replay.h"

namespace gflow::lab {

/// A snapshot as `gctl snapshot` writes it, ready to be replayed: active jobs go on where they
/// were, pending ones wait as long as they did, and run times come from those that ended.
/// `file` is what errors name. Errors: Usage.
[[nodiscard]] Result<Subject> read_snapshot(std::string_view json, const std::string& file);

}  // namespace gflow::lab
