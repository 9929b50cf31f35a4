// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/text.h"
#include "config/gpu_config.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::daemon {
namespace {

using Set = Result<void> (*)(Config&, const std::string& value);

Result<void> set_duration(std::chrono::seconds& field, const std::string& value) {
  field = GF_TRY(parse_duration(value));
  return {};
}

Result<void> set_count(std::size_t& field, const std::string& value) {
  const auto number = parse_number(value);
  if (!number || *number == 0) {
    return fail(Code::Usage, fmt::format("'{}' is not a number from 1 on", printable(value)));
  }
  field = *number;
  return {};
}

Result<void> set_flag(bool& field, const std::string& value) {
  if (value != "true" && value != "false") {
    return fail(Code::Usage, fmt::format("'{}' is neither true nor false", printable(value)));
  }
  field = value == "true";
  return {};
}

Result<void> set_log_level(Config& config, const std::string& value) {
  constexpr std::array<std::string_view, 4> kLevels = {"debug", "info", "warning", "error"};
  if (std::ranges::find(kLevels, value) == kLevels.end()) {
    return fail(Code::Usage,
                fmt::format("'{}' is not one of debug, info, warning, error", printable(value)));
  }
  config.log_level = value;
  return {};
}

struct Key {
  std::string_view section;
  std::string_view name;
  Set set;
};

constexpr std::array<Key, 11> kKeys = {{
    {"daemon",
     "devices",
     [](Config& c, const std::string& v) -> Result<void> {
       c.devices = v;
       return {};
     }},
    {"daemon",
     "socket",
     [](Config& c, const std::string& v) -> Result<void> {
       c.socket = v;
       return {};
     }},
    {"daemon", "log_level", set_log_level},
    {"scheduler",
     "backfill_patience",
     [](Config& c, const std::string& v) { return set_duration(c.policy.backfill_patience, v); }},
    {"scheduler",
     "keep_ended",
     [](Config& c, const std::string& v) { return set_duration(c.policy.keep_ended, v); }},
    {"scheduler",
     "keep_ended_most",
     [](Config& c, const std::string& v) { return set_count(c.policy.keep_ended_most, v); }},
    {"scheduler",
     "queue_most",
     [](Config& c, const std::string& v) { return set_count(c.policy.queue_most, v); }},
    {"scheduler",
     "submit_most",
     [](Config& c, const std::string& v) { return set_count(c.policy.submit_most, v); }},
    {"runner",
     "launch_backoff",
     [](Config& c, const std::string& v) { return set_duration(c.policy.launch_backoff, v); }},
    {"runner", "cgroups", [](Config& c, const std::string& v) { return set_flag(c.cgroups, v); }},
    {"store",
     "ballast",
     [](Config& c, const std::string& v) -> Result<void> {
       c.ballast = GF_TRY(parse_memory(v));
       return {};
     }},
}};

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
  const auto key = std::ranges::find_if(
      kKeys, [&](const Key& one) { return one.section == section && one.name == name; });
  if (key == kKeys.end()) return std::unexpected(unknown_key(section + "." + name));
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
  for (const Key& key : kKeys) {
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
  for (const Key& key : kKeys) keys.push_back(fmt::format("{}.{}", key.section, key.name));
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
