// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "placement/policy.h"

/// The makers of the table in table.cpp, one per file.
namespace gflow::placement {

[[nodiscard]] std::unique_ptr<Policy> make_fgd(const PolicyOptions& options);

}  // namespace gflow::placement
