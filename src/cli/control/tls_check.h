// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "config/gflow_toml.h"
#include "config/problem.h"

namespace gflow::cli {

/// Whether gflowd could show other machines the files that a gflow.toml names, which it is asked:
/// commands start without OpenSSL. Nothing is wrong where they are not served at all; a file that
/// only others may read is a note.
[[nodiscard]] Result<config::Checked> check_tls(const config::Config& config,
                                                const std::string& path);

}  // namespace gflow::cli
