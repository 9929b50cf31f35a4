// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gflow::api {

/// JSON Schema (2020-12) of what is submitted of a job, a `spec`: types, ranges, defaults, what
/// each field is, and until when it may be changed (`x-change`). Indented, ends with a line end.
[[nodiscard]] std::string job_schema();

}  // namespace gflow::api
