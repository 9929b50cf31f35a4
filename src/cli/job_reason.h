// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "api/types.h"

namespace gflow::cli {

/// Why it waits or how it ended; a begin time as clocks on the wall have it. Not yet printable().
[[nodiscard]] std::string reason_of(const api::JobView& job);

}  // namespace gflow::cli
