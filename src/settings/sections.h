// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "settings/settings.h"

namespace gflow::settings {

// table_api.cpp
void add_api(std::vector<Setting>& table);
void add_api_for_others(std::vector<Setting>& table);
void add_telemetry(std::vector<Setting>& table);

}  // namespace gflow::settings
