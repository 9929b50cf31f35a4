// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/id.h"

namespace gflow {

struct JobTag;
/// Number of a job: given once, in order of submission, never reused.
using JobId = Id<JobTag>;

}  // namespace gflow
