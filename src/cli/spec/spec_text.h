// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "api/gpu_spec.h"
#include "command/terminal.h"
#include "core/gpu_config.h"

namespace gflow::cli {

/// A line for each thing a request says, for people; for a screen of so many columns, 0: for none.
[[nodiscard]] std::string spec_text(const api::GpuSpecView& view,
                                    const GpuConfig& config,
                                    const Painter& paint,
                                    std::size_t columns = 0);

/// The text with what is wrong marked below it:
///     2(nvdia)
///       ^^^^^
[[nodiscard]] std::string marked_text(std::string_view text, const GpuRequestMistake& mistake);

}  // namespace gflow::cli
