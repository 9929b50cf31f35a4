// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/made_slice.h"
#include "devices/nvml/library.h"

namespace gflow::devices::nvml {

/// Makes or removes a slice, by its stage, and says what became of it. What was ordered again and
/// is there, of that profile at that place, is what was made before. Calls may block for ever: only
/// gflow-mig does it.
[[nodiscard]] SliceOutcome cut(const Library& library, const MadeSlice& slice);

/// Why nothing is begun.
inline constexpr const char* kEarlier = "an earlier gflow-mig has not come back from the driver";

/// Of an order for which the driver was asked for nothing yet: refused, but unclear where an
/// earlier one may have done some of it.
[[nodiscard]] SliceOutcome not_looked_at(const MadeSlice& slice, const std::string& why);

/// "made MIG-... 3", "removed", "refused WHY", "unclear WHY": a line, without its end.
[[nodiscard]] std::string to_line(const SliceOutcome& outcome);
/// Unclear for anything that to_line() does not write.
[[nodiscard]] SliceOutcome outcome_from(std::string_view line);

}  // namespace gflow::devices::nvml
