// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/source.h"

namespace gflow::devices::sim {

/// A simulated machine from what stands after "sim:": models ("8xH100") or the path of a machine
/// file. A file is read again when it changes and at refresh(); one that cannot be read leaves the
/// machine as it was, with the reason in Machine::note.
[[nodiscard]] Result<std::unique_ptr<Source>> open(const std::string& text);

}  // namespace gflow::devices::sim
