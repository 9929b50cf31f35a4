// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "devices/sim/machine_file.h"
#include "devices/sim/yaml.h"

/// Inside of sim: values that several parts of a machine file have. Errors are those of Fields.
namespace gflow::devices::sim {

template <typename Target>
[[nodiscard]] Result<void> take_number(const Fields& fields,
                                       const char* key,
                                       Range range,
                                       Target& target) {
  const auto number = GF_TRY(fields.number(key, range));
  if (number) target = static_cast<int>(*number);
  return {};
}

/// One of a few words, as its place among them; empty if the key is not there.
[[nodiscard]] Result<std::optional<std::size_t>> choice(const Fields& fields,
                                                        std::string_view key,
                                                        const std::vector<std::string>& words);

/// "uuid" of a GPU or a MIG device, of 1 to 80 visible characters.
[[nodiscard]] Result<std::optional<std::string>> read_uuid(const Fields& fields);

/// The list "processes" of a GPU or a MIG device, at most kMaxProcesses.
[[nodiscard]] Result<std::vector<SimProcess>> read_processes(const Fields& fields);

}  // namespace gflow::devices::sim
