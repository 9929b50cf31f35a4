// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/yaml.h"

/// Machine files are read with the same reader as configuration.
namespace gflow::devices::sim {

using config::Fields;
using config::kMaxYamlDepth;
using config::kMaxYamlText;
using config::kMaxYamlValues;
using config::Range;
using config::read_yaml;
using config::Yaml;

}  // namespace gflow::devices::sim
