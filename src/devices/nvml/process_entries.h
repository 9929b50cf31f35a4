// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cuda/nvml_abi.h"

namespace gflow::devices::nvml {

namespace abi = gflow::cuda::nvml;

/// Bytes from one process entry to the next. Drivers ship entries of 16, 24 and 32 bytes under one
/// symbol, so neither its name nor the driver's version tells; what was written does. `first` and
/// `second` are the same answer in buffers filled with different bytes beforehand: bytes equal in
/// both were written by the driver. `guess` if they do not tell.
[[nodiscard]] std::size_t entry_bytes(std::span<const std::byte> first,
                                      std::span<const std::byte> second,
                                      std::size_t count,
                                      std::size_t guess);

/// The entries of a buffer.
[[nodiscard]] std::vector<abi::Process> entries_of(std::span<const std::byte> buffer,
                                                   std::size_t count,
                                                   std::size_t bytes_each);

}  // namespace gflow::devices::nvml
