// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gflow {

/// The index of a container for a number that is never negative: of a GPU, a node, a CPU.
constexpr std::size_t at(int index) { return static_cast<std::size_t>(index); }

}  // namespace gflow
