// SPDX-License-Identifier: Apache-2.0
#include "config/gflow_toml.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "base/translate.h"
#include "config/gpu_config.h"
#include "config/other_gflow.h"
#include "config/toml.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::config {
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
  return fail(Code::Usage, tr("the value is neither a text, a whole number, true nor false"));
}

Result<void> set_key(Config& config, const std::string& name, const toml::node& node) {
  const settings::Setting* setting = GF_TRY(settings::find(name));
  const auto text = text_of(node, setting->type);
  if (!text) return with_context(text.error(), name);
  if (auto done = setting->read(config, *text); !done) return with_context(done.error(), name);
  return {};
}

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

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

/// Reads a parsed file, and goes on behind what is wrong.
class TomlReader {
 public:
  TomlReader(Config& config, std::string path) : config_(config), path_(std::move(path)) {}

  std::vector<Problem> read(const toml::table& table) {
    for (const auto& [section, part] : table) {
      const std::string name(section.str());
      const toml::table* keys = part.as_table();
      if (other_key(name)) {
        collect(name, part, others_);
      } else if (keys == nullptr) {
        note(part, settings::find(name));
      } else {
        read_section(name, *keys);
      }
    }
    read_others();
    std::ranges::stable_sort(problems_, {}, &Problem::line);
    return std::move(problems_);
  }

 private:
  template <typename T>
  bool note(const toml::node& node, const Result<T>& done) {
    if (!done) problems_.push_back({path_, line_of(node), done.error().message});
    return done.has_value();
  }
  [[nodiscard]] std::string where(const toml::node& node) const {
    return fmt::format("{}:{}", path_, line_of(node));
  }

  void read_section(const std::string& section, const toml::table& keys) {
    for (const auto& [name, value] : keys) {
      const std::string full = section + "." + std::string(name.str());
      if (!settings::find(full) && other_key(full)) {
        collect(full, value, others_);
      } else if (note(value, set_key(config_, full, value))) {
        config_.origins[full] = where(value);
      }
    }
  }

  /// Takes one over if there is an equal that the file does not set; whether it did.
  Result<bool> take_equal(const Other& other) {
    const std::string setting(other.key.setting);
    if (setting == kMonitorInterval) {
      const auto seconds = other.node->value_exact<std::int64_t>();
      if (!seconds || *seconds <= 0 || config_.gpus.monitor_update_interval) return false;
      config_.gpus.monitor_update_interval = std::chrono::seconds(*seconds);
      return true;
    }
    if (setting.empty() || config_.origins.contains(setting)) return false;
    GF_CHECK(set_key(config_, setting, *other.node));
    return true;
  }

  void read_others() {
    std::vector<std::string> ignored;
    for (const Other& other : others_) {
      const auto taken = take_equal(other);
      if (!note(*other.node, taken)) continue;
      if (*taken) {
        const std::string line = where(*other.node);
        config_.origins[std::string(other.key.setting)] = line;
        config_.warnings.push_back(
            tr_format("{}: {} is read as {}", line, printable(other.name), other.key.setting));
        continue;
      }
      const std::string advice =
          other.key.advice.empty() ? "" : fmt::format(" ({})", other.key.advice);
      ignored.push_back(printable(other.name) + advice);
    }
    if (ignored.empty()) return;
    config_.warnings.push_back(
        tr_format("{}: ignored, as they belong to another gflow: {}", path_, join(ignored, ", ")));
  }

  Config& config_;
  std::string path_;
  std::vector<Other> others_;
  std::vector<Problem> problems_;
};

/// Everything that is wrong with the text, in the order of its lines; what is right is set.
std::vector<Problem> read_text(Config& config, const std::string& text, const std::string& path) {
  const auto table = parse_toml(text, path);
  if (!table) return {table.error()};
  return TomlReader(config, path).read(*table);
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

/// For who reads one problem only: the first, and how many more there are.
std::unexpected<Error> first_of(const std::vector<Problem>& problems) {
  const std::string more = problems.size() == 1 ? ""
                                                : tr_count(problems.size() - 1,
                                                           " ({} more: see 'gctl config check')",
                                                           " ({} more: see 'gctl config check')",
                                                           problems.size() - 1);
  return fail(Code::Usage, problem_text(problems.front()) + more);
}

}  // namespace

std::string problem_text(const Problem& problem) {
  return fmt::format("{}:{}: {}", problem.file, problem.line, problem.message);
}

Checked check_gflow_toml(const std::string& text, const std::string& path) {
  Config config;
  Checked checked;
  checked.problems = read_text(config, text, path);
  checked.notes = std::move(config.warnings);
  return checked;
}

Result<Config> read_gflow_toml(const std::string& text, const std::string& path) {
  Config config;
  const auto problems = read_text(config, text, path);
  if (!problems.empty()) return first_of(problems);
  return config;
}

Result<Config> read_config(const std::string& path,
                           bool required,
                           const std::map<std::string, std::string>& flags) {
  Config config;
  if (const auto named = os::environment("GFLOW_GPU_CONFIG");
      named && !named->empty() && !named->starts_with('/')) {
    return fail(Code::Usage,
                tr_format("GFLOW_GPU_CONFIG: '{}' is a relative path: begin it with '/'",
                          printable(*named)));
  }
  config.gpus = GF_TRY(read_gpu_config(path));
  const auto usual = gpu_settings(GpuConfig());
  const auto found = gpu_settings(config.gpus);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].value == usual[i].value) continue;
    config.origins["gpu_config." + found[i].name] = gpu_config_path(path);
  }
  if (config.gpus.log_level) {
    config.log_level = *config.gpus.log_level;
    config.origins["daemon.log_level"] = gpu_config_path(path);
  }
  const auto text = os::read_regular_file(path, Memory::mib(1));
  if (text) {
    const auto problems = read_text(config, *text, path);
    if (!problems.empty()) return first_of(problems);
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

}  // namespace gflow::config
