// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <vector>

#include "base/text.h"
#include "config/gpu_config.h"
#include "daemon/other_gflow.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::daemon {
namespace {

/// A value of the file as the text a person would have typed: "4", "true"; arrays and tables with
/// commas, where the setting has several values.
Result<std::string> text_of(const toml::node& node, settings::Type type) {
  if (const auto text = node.value_exact<std::string>()) return *text;
  if (const auto flag = node.value_exact<bool>()) return std::string(*flag ? "true" : "false");
  if (const auto number = node.value_exact<std::int64_t>()) return std::to_string(*number);
  std::vector<std::string> parts;
  if (const toml::array* list = node.as_array(); list != nullptr && type == settings::Type::List) {
    for (const toml::node& one : *list) {
      parts.push_back(GF_TRY(text_of(one, settings::Type::Text)));
    }
    return join(parts, ", ");
  }
  if (const toml::table* map = node.as_table(); map != nullptr && type == settings::Type::Map) {
    for (const auto& [key, value] : *map) {
      parts.push_back(
          fmt::format("{}={}", key.str(), GF_TRY(text_of(value, settings::Type::Text))));
    }
    return join(parts, ", ");
  }
  return fail(Code::Usage, "the value is neither a text, a whole number, true nor false");
}

Result<void> set_key(Config& config, const std::string& name, const toml::node& node) {
  const settings::Setting* setting = GF_TRY(settings::find(name));
  const auto text = text_of(node, setting->type);
  if (!text) return with_context(text.error(), name);
  if (auto done = setting->read(config, *text); !done) return with_context(done.error(), name);
  return {};
}

/// A key of the other gflow, with its place in the file.
struct Other {
  std::string name;
  OtherKey key;
  const toml::node* node;
};

/// The keys in a node that is wholly another gflow's.
void collect(const std::string& name, const toml::node& node, std::vector<Other>& others) {
  const toml::table* within = node.as_table();
  if (within == nullptr) {
    if (const auto key = other_key(name)) others.push_back({name, *key, &node});
    return;
  }
  for (const auto& [part, value] : *within) {
    collect(name + "." + std::string(part.str()), value, others);
  }
}

std::string where(const std::string& path, const toml::node& node) {
  return fmt::format("{}:{}", path, node.source().begin.line);
}

Result<void> read_section(Config& config,
                          const std::string& section,
                          const toml::table& keys,
                          const std::string& path,
                          std::vector<Other>& others) {
  for (const auto& [name, value] : keys) {
    const std::string full = section + "." + std::string(name.str());
    if (!settings::find(full) && other_key(full)) {
      collect(full, value, others);
      continue;
    }
    if (auto done = set_key(config, full, value); !done) {
      return with_context(done.error(), where(path, value));
    }
    config.origins[full] = where(path, value);
  }
  return {};
}

/// Takes one over if there is an equal that the file does not set; whether it did.
Result<bool> take_equal(Config& config, const Other& other) {
  const std::string setting(other.key.setting);
  if (setting == kMonitorInterval) {
    const auto seconds = other.node->value_exact<std::int64_t>();
    if (!seconds || *seconds <= 0 || config.gpus.monitor_update_interval) return false;
    config.gpus.monitor_update_interval = std::chrono::seconds(*seconds);
    return true;
  }
  if (setting.empty() || config.origins.contains(setting)) return false;
  GF_CHECK(set_key(config, setting, *other.node));
  return true;
}

Result<void> read_others(Config& config,
                         const std::vector<Other>& others,
                         const std::string& path) {
  std::vector<std::string> ignored;
  for (const Other& other : others) {
    const auto taken = take_equal(config, other);
    if (!taken) return with_context(taken.error(), where(path, *other.node));
    if (*taken) {
      const std::string line = where(path, *other.node);
      config.origins[std::string(other.key.setting)] = line;
      config.warnings.push_back(
          fmt::format("{}: {} is read as {}", line, printable(other.name), other.key.setting));
      continue;
    }
    const std::string advice =
        other.key.advice.empty() ? "" : fmt::format(" ({})", other.key.advice);
    ignored.push_back(printable(other.name) + advice);
  }
  if (ignored.empty()) return {};
  config.warnings.push_back(
      fmt::format("{}: ignored, as they belong to another gflow: {}", path, join(ignored, ", ")));
  return {};
}

Result<void> read_table(Config& config, const toml::table& table, const std::string& path) {
  std::vector<Other> others;
  for (const auto& [section, part] : table) {
    const std::string name(section.str());
    const toml::table* keys = part.as_table();
    if (other_key(name)) {
      collect(name, part, others);
    } else if (keys == nullptr) {
      return with_context(settings::find(name).error(), where(path, part));
    } else {
      GF_CHECK(read_section(config, name, *keys, path, others));
    }
  }
  return read_others(config, others, path);
}

Result<void> read_environment(Config& config) {
  for (const settings::Setting& setting : settings::table()) {
    const std::string variable = setting.environment();
    const auto value = os::environment(variable);
    if (!value) continue;
    if (auto done = setting.read(config, *value); !done) {
      return with_context(done.error(), variable);
    }
    config.origins[setting.full_name()] = variable;
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

Result<Config> read_config(const std::string& path,
                           bool required,
                           const std::map<std::string, std::string>& flags) {
  Config config;
  if (const auto named = os::environment("GFLOW_GPU_CONFIG");
      named && !named->empty() && !named->starts_with('/')) {
    return fail(Code::Usage,
                fmt::format("GFLOW_GPU_CONFIG: '{}' is a relative path: begin it with '/'",
                            printable(*named)));
  }
  config.gpus = GF_TRY(config::read_gpu_config(path));
  if (config.gpus.log_level) {
    config.log_level = *config.gpus.log_level;
    config.origins["daemon.log_level"] = config::gpu_config_path(path);
  }
  const auto text = os::read_regular_file(path, Memory::mib(1));
  if (text) {
    GF_CHECK(read_text(config, *text, path));
  } else if (required || text.error().code != Code::NotFound) {
    return std::unexpected(text.error());
  }
  GF_CHECK(read_environment(config));
  for (const auto& [name, value] : flags) {
    const settings::Setting* setting = GF_TRY(settings::find(name));
    const std::string flag = fmt::format("--{}", setting->flag);
    if (auto done = setting->read(config, value); !done) return with_context(done.error(), flag);
    config.origins[name] = flag;
  }
  return config;
}

}  // namespace gflow::daemon
