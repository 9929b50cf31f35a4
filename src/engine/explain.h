// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/index.h"

/// Inside of the engine: reasons, where more than explain.cpp tells of them. Not for other modules.
namespace gflow::engine {

/// What keeps a job waiting whose user is at a limit, or is when so many more such jobs run.
[[nodiscard]] Blocker user_limit_of(const Index& index,
                                    const JobSpec& spec,
                                    Now now,
                                    std::size_t more = 0);

}  // namespace gflow::engine
