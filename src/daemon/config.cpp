// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>

#include "base/text.h"
#include "config/gpu_config.h"
#include "daemon/config_keys.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::daemon {
namespace {

Error unknown_key(const std::string& key) {
  const std::vector<std::string> known = config_keys();
  const auto near = nearest(key, known);
  return {Code::Usage,
          fmt::format("there is no key '{}'{}",
                      printable(key),
                      near ? fmt::format("; did you mean '{}'?", *near) : std::string())};
}

/// A TOML value as the text a person would have typed on the command line.
Result<std::string> text_of(const toml::node& node) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return std::string(*flag ? "true" : "false");
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  return fail(Code::Usage, "the value is neither a text, a whole number, true nor false");
}

Result<void> set_key(Config& config,
                     const std::string& section,
                     const std::string& name,
                     const toml::node& node) {
  const auto keys = config_key_table();
  const auto key = std::ranges::find_if(
      keys, [&](const ConfigKey& one) { return one.section == section && one.name == name; });
  if (key == keys.end()) return std::unexpected(unknown_key(section + "." + name));
  const auto done = key->set(config, GF_TRY(text_of(node)));
  if (!done) return with_context(done.error(), section + "." + name);
  return {};
}

Result<void> read_table(Config& config, const toml::table& table, const std::string& path) {
  const auto where = [&path](const toml::node& node) {
    return fmt::format("{}:{}", path, node.source().begin.line);
  };
  for (const auto& [section, part] : table) {
    const std::string section_name(section.str());
    const toml::table* keys = part.as_table();
    if (keys == nullptr) {
      return with_context(unknown_key(section_name), where(part));
    }
    for (const auto& [name, value] : *keys) {
      const auto done = set_key(config, section_name, std::string(name.str()), value);
      if (!done) return with_context(done.error(), where(value));
    }
  }
  return {};
}

Result<void> read_environment(Config& config) {
  for (const ConfigKey& key : config_key_table()) {
    std::string variable = fmt::format("GFLOW_{}__{}", key.section, key.name);
    std::ranges::transform(variable, variable.begin(), ascii_upper);
    const auto value = os::environment(variable);
    if (!value) continue;
    if (const auto done = key.set(config, *value); !done) {
      return with_context(done.error(), variable);
    }
  }
  return {};
}

Result<void> read_text(Config& config, const std::string& text, const std::string& path) {
  try {
    return read_table(config, toml::parse(text, path), path);
  } catch (const toml::parse_error& error) {
    return fail(Code::Usage,
                fmt::format("{}:{}: {}", path, error.source().begin.line, error.description()));
  }
}

}  // namespace

std::vector<std::string> config_keys() {
  std::vector<std::string> keys;
  for (const ConfigKey& key : config_key_table())
    keys.push_back(fmt::format("{}.{}", key.section, key.name));
  return keys;
}

Result<Config> read_config(const std::string& path, bool required) {
  Config config;
  config.gpus = GF_TRY(config::read_gpu_config(path));
  if (config.gpus.log_level) config.log_level = *config.gpus.log_level;
  const auto text = os::read_file(path, Memory::mib(1));
  if (text) {
    GF_CHECK(read_text(config, *text, path));
  } else if (required || text.error().code != Code::NotFound) {
    return std::unexpected(text.error());
  }
  GF_CHECK(read_environment(config));
  return config;
}

}  // namespace gflow::daemon
