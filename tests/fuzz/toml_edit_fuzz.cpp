// SPDX-License-Identifier: Apache-2.0
// A setting is set in a gflow.toml, whatever is in it, or refused: what was set is read back,
// setting it again changes nothing, and taken out it has its default.
#include <algorithm>

#include "config/gflow_toml.h"
#include "config/toml_edit.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(gflow::fuzz::text_of(data, size));
  // toml++ 3.3 calls unreachable what it reaches with letters of U+00A1 to U+0499 that stand
  // outside of texts (is_non_ascii_horizontal_whitespace). It is told right nevertheless, that it
  // is no TOML.
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) > 0x7F; })) {
    return 0;
  }
  for (const auto& [name, value] : {std::pair{"scheduler.max_queued", "7"},
                                    {"access.operators", "\"bob\\\n李雷"},
                                    {"priority.users", "alice=3"}}) {
    const gflow::settings::Setting& setting = *gflow::settings::find(name).value();
    const auto set = gflow::config::set_in_toml(text, "f", setting, value);
    if (!set) {
      require(!set.error().message.empty());
      continue;
    }
    gflow::settings::Settings want;
    require(setting.read(want, value).has_value());
    const auto read = gflow::config::read_gflow_toml(*set, "f");
    require(read && setting.write(*read) == setting.write(want));
    require(gflow::config::set_in_toml(*set, "f", setting, value) == *set);
    const auto unset = gflow::config::unset_in_toml(*set, "f", setting);
    if (!unset) continue;
    const auto without = gflow::config::read_gflow_toml(*unset, "f");
    require(without && setting.write(*without) == setting.default_value());
  }
  return 0;
}
