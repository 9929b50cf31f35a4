// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <vector>

#include "base/text.h"
#include "config/gpu_config.h"
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

Result<void> read_table(Config& config, const toml::table& table, const std::string& path) {
  const auto where = [&path](const toml::node& node) {
    return fmt::format("{}:{}", path, node.source().begin.line);
  };
  for (const auto& [section, part] : table) {
    const std::string section_name(section.str());
    const toml::table* keys = part.as_table();
    if (keys == nullptr) {
      return with_context(settings::find(section_name).error(), where(part));
    }
    for (const auto& [name, value] : *keys) {
      const std::string full = section_name + "." + std::string(name.str());
      if (auto done = set_key(config, full, value); !done) {
        return with_context(done.error(), where(value));
      }
      config.origins[full] = where(value);
    }
  }
  return {};
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
