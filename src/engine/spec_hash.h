// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "core/job.h"

namespace gflow::engine {

/// Of all that is described of a specification: jobs that differ in anything differ here, too, but
/// by accident. Not stored; another in the next process may be.
[[nodiscard]] std::size_t hash_of(const JobSpec& spec);

}  // namespace gflow::engine
