// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/text.h"
#include "core/job.h"

namespace gflow::cli {

/// "-" where it is another user's and gflowd does not tell it.
[[nodiscard]] inline std::string job_name_text(const JobSpec& spec) {
  return spec.name.empty() ? "-" : printable(spec.name);
}

}  // namespace gflow::cli
