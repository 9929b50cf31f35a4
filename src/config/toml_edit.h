// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"
#include "settings/settings.h"

/// Changes of one setting in the text of a gflow.toml: comments, order and every other line stay as
/// they are. What comes out is read again, and refused unless that setting, and nothing else, is
/// what changed. Errors: Usage with FILE:LINE where only a person can do it.
namespace gflow::config {

/// Sets it: its value where it stands, else a new line at the end of its section, else a new
/// section at the end. `value` is as the setting reads it.
[[nodiscard]] Result<std::string> set_in_toml(const std::string& text,
                                              const std::string& path,
                                              const settings::Setting& setting,
                                              const std::string& value);
/// Takes it out with its line. Errors: also NotFound if it is not there.
[[nodiscard]] Result<std::string> unset_in_toml(const std::string& text,
                                                const std::string& path,
                                                const settings::Setting& setting);

}  // namespace gflow::config
