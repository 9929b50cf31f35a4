// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/types.h"

namespace gflow::cli {

/// What `ginfo --topo` prints: the matrix, then what each word in it means and carries.
/// Errors: Code::Usage for a daemon's answer that is no matrix.
[[nodiscard]] Result<std::string> links_text(const api::NodeView& node);

}  // namespace gflow::cli
