// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command/help.h"

namespace gflow::cli {

/// gflow.toml with every setting, its default and what it may be.
[[nodiscard]] FileFormat gflow_toml_format();

}  // namespace gflow::cli
