// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "lab/trace.h"

namespace gflow::lab {

/// Whether it is what 'sacct --parsable2' prints, with its header.
[[nodiscard]] bool is_sacct(std::string_view text);

/// Reads that: docs/format/trace.md. The jobs that had GPUs, with when Slurm started them; what was
/// left out is in its notes. REQUIRES: is_sacct(text). `file` is what errors name: "FILE:LINE:
/// ...". Errors: Usage.
[[nodiscard]] Result<Trace> read_sacct(std::string_view text, const std::string& file);

}  // namespace gflow::lab
