// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/types.h"

namespace gflow::cli {

/// What `ginfo --topo` prints: the matrix, then what each word in it means and carries; for a
/// screen of so many columns, 0 for none. Errors: Code::Usage for a daemon's answer that is no
/// matrix.
[[nodiscard]] Result<std::string> links_text(const api::NodeView& node, std::size_t columns);

}  // namespace gflow::cli
