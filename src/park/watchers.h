// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/proc_text.h"
#include "base/result.h"

namespace gflow::park {

/// Refused, with the first of these processes that could not tell that it wants its GPU back, as it
/// has no slot in the account at this path (docs/format/account.md), or none that can be known: its
/// pid there is that of a pid namespace of its own. Who has ended is left out. Errors: a file that
/// is no account of a job with whole GPUs. Read anew each time, as processes take slots meanwhile.
[[nodiscard]] Result<void> check_watchers(const std::string& account,
                                          const std::vector<ProcessFacts>& processes);

}  // namespace gflow::park
