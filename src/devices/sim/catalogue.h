// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"

namespace gflow::devices::sim {

/// What a GPU model is and how it looks when nothing runs on it.
struct Model {
  std::string_view key;      ///< what people type: "H100"
  std::string_view aliases;  ///< further spellings, separated by spaces
  std::string_view name;     ///< as the driver reports it
  std::string_view vendor;
  Memory memory;
  int power_limit_watts = 0;
  int idle_watts = 0;
  int idle_celsius = 0;
  Memory idle_memory;  ///< used with no process there
};

/// The model of a key, an alias or a driver's name; case, spaces and '-' do not matter.
[[nodiscard]] std::optional<Model> find_model(std::string_view text);
/// Every key, in the order of the table.
[[nodiscard]] std::vector<std::string> model_keys();
/// The sentence for a model that is not in the table: what was meant perhaps, and all there are.
[[nodiscard]] std::string unknown_model_text(std::string_view text);

}  // namespace gflow::devices::sim
