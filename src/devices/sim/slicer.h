// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/slicer.h"

namespace gflow::devices::sim {

/// For the machine of a file: what is made is kept beside it (made_instances.h).
[[nodiscard]] Result<std::unique_ptr<Slicer>> open_slicer(const std::string& machine_file);

}  // namespace gflow::devices::sim
