// SPDX-License-Identifier: Apache-2.0
#include "config/gpu_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "base/time.h"
#include "base/translate.h"
#include "config/yaml.h"
#include "core/catalogue.h"
#include "os/file.h"
#include "os/user.h"

namespace gflow::config {
namespace {

const std::vector<std::string>& keys() {
  static const std::vector<std::string> all = {"gpu_resource",
                                               "default_gpu_resource_name",
                                               "gpu_memory_specs",
                                               "monitor_update_interval",
                                               "resource_change_threshold",
                                               "log_level"};
  return all;
}

/// The entries of a map whose keys are free; none if it is not there.
Result<std::vector<Yaml::Entry>> map_of(const Fields& fields, std::string_view key) {
  const Yaml* found = fields.find(key);
  if (found == nullptr) return std::vector<Yaml::Entry>();
  const auto* entries = std::get_if<std::vector<Yaml::Entry>>(&found->value);
  if (entries == nullptr) return fields.error(key, tr("has to be a map"));
  return *entries;
}

/// An error at one entry of such a map.
std::unexpected<Error> entry_error(const Fields& fields,
                                   std::string_view key,
                                   const Yaml::Entry& entry,
                                   std::string_view what) {
  return fail(Code::Usage,
              fmt::format("{}:{}: {}.{}: {}",
                          printable(fields.file()),
                          entry.value.line,
                          key,
                          printable(entry.key),
                          what));
}

Result<std::string> entry_text(const Fields& fields,
                               std::string_view key,
                               const Yaml::Entry& entry) {
  const auto* text = std::get_if<std::string>(&entry.value.value);
  if (text == nullptr) return entry_error(fields, key, entry, tr("has to be one word or number"));
  return *text;
}

/// A name of Kubernetes for what nodes have: a domain, "/", a name.
bool is_resource_name(std::string_view name) {
  const auto plain = [](char c) {
    return (ascii_upper(c) >= 'A' && ascii_upper(c) <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '/';
  };
  constexpr std::size_t kMax = 253;
  return name.size() <= kMax && std::ranges::all_of(name, plain) &&
         std::ranges::count(name, '/') == 1 && !name.starts_with('/') && !name.ends_with('/');
}

Result<void> read_resources(const Fields& fields, GpuResources& resources) {
  constexpr std::string_view kKey = "gpu_resource";
  for (const Yaml::Entry& entry : GF_TRY(map_of(fields, kKey))) {
    const std::string vendor = to_lower(entry.key);
    const bool word =
        !vendor.empty() && vendor.size() <= 32 && std::ranges::all_of(vendor, [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        });
    if (!word || !catalogue::read_model(vendor).empty()) {
      return entry_error(fields, kKey, entry, tr("a vendor is a word that is no model of a GPU"));
    }
    const std::string name = GF_TRY(entry_text(fields, kKey, entry));
    if (!is_resource_name(name)) {
      return entry_error(
          fields,
          kKey,
          entry,
          tr_format("'{}' is not the name of a resource, such as nvidia.com/gpu", printable(name)));
    }
    resources.names[vendor] = name;
  }
  const auto usual = GF_TRY(fields.text("default_gpu_resource_name"));
  if (!usual) return {};
  if (!is_resource_name(*usual)) {
    return fields.error(
        "default_gpu_resource_name",
        tr_format("'{}' is not the name of a resource, such as nvidia.com/gpu", printable(*usual)));
  }
  resources.default_name = *usual;
  return {};
}

/// "80", "80.0": GB as drivers count them, 1024 MiB; "80G" as everywhere.
Result<Memory> gigabytes(const std::string& text) {
  const bool bare = text.find_first_not_of("0123456789.") == std::string::npos;
  return parse_memory(bare ? text + "G" : text);
}

Result<void> read_specs(const Fields& fields, GpuConfig& config) {
  constexpr std::string_view kKey = "gpu_memory_specs";
  for (const Yaml::Entry& entry : GF_TRY(map_of(fields, kKey))) {
    const std::string model = catalogue::read_model(entry.key);
    if (model.empty()) return entry_error(fields, kKey, entry, tr("is not a model of a GPU"));
    const auto memory = gigabytes(GF_TRY(entry_text(fields, kKey, entry)));
    if (!memory) return entry_error(fields, kKey, entry, memory.error().message);
    if (!config.memory_specs.emplace(model, *memory).second) {
      return entry_error(fields, kKey, entry, tr_format("{} is given twice", model));
    }
  }
  return {};
}

/// "0.05", from nothing to the whole, at most four decimals.
Result<void> read_threshold(const Fields& fields, GpuConfig& config) {
  constexpr std::string_view kKey = "resource_change_threshold";
  const auto text = GF_TRY(fields.text(kKey));
  if (!text) return {};
  if (parse_number(*text) == 0) {
    config.resource_change_threshold = Share{};
    return {};
  }
  const auto share = parse_gpu_request(*text);
  const bool one = share && share->gpus == 1 && share->memory.bytes == 0 && share->models.empty() &&
                   share->vendor.empty();
  if (!one) {
    return fields.error(kKey, tr_format("'{}' is not a fraction, such as 0.05", printable(*text)));
  }
  config.resource_change_threshold = share->share;
  return {};
}

Result<void> read_level(const Fields& fields, GpuConfig& config) {
  const auto text = GF_TRY(fields.text("log_level"));
  if (!text) return {};
  constexpr std::array kLevels =
      std::to_array<std::pair<std::string_view, std::string_view>>({{"debug", "debug"},
                                                                    {"info", "info"},
                                                                    {"warning", "warning"},
                                                                    {"warn", "warning"},
                                                                    {"error", "error"},
                                                                    {"critical", "error"}});
  const std::string lower = to_lower(*text);
  const auto level =
      std::ranges::find_if(kLevels, [&](const auto& pair) { return pair.first == lower; });
  if (level == kLevels.end()) {
    return fields.error(
        "log_level", tr_format("'{}' is not one of DEBUG, INFO, WARNING, ERROR", printable(*text)));
  }
  config.log_level = std::string(level->second);
  return {};
}

Result<GpuConfig> read_root(const Yaml& root, const std::string& file) {
  GpuConfig config;
  if (std::holds_alternative<std::monostate>(root.value)) return config;  // nothing but comments
  const Fields fields = GF_TRY(Fields::of(root, file, "", keys()));
  GF_CHECK(read_resources(fields, config.resources));
  GF_CHECK(read_specs(fields, config));
  constexpr Range kInterval = {1, 86'400};
  if (const auto seconds = GF_TRY(fields.number("monitor_update_interval", kInterval))) {
    config.monitor_update_interval = std::chrono::seconds(*seconds);
  }
  GF_CHECK(read_threshold(fields, config));
  GF_CHECK(read_level(fields, config));
  return config;
}

/// The document in pieces that are wrong each by itself: its keys, and the entries of its maps.
std::vector<Yaml> pieces_of(const Yaml& root) {
  const auto* entries = std::get_if<std::vector<Yaml::Entry>>(&root.value);
  if (entries == nullptr) return {root};
  std::vector<Yaml> pieces;
  for (const Yaml::Entry& entry : *entries) {
    const auto* inner = std::get_if<std::vector<Yaml::Entry>>(&entry.value.value);
    const bool is_known = std::ranges::find(keys(), entry.key) != keys().end();
    if (inner == nullptr || !is_known) {
      pieces.push_back({entry.value.line, std::vector{entry}});
      continue;
    }
    for (const Yaml::Entry& one : *inner) {
      const Yaml map{entry.value.line, std::vector{one}};
      pieces.push_back({one.value.line, std::vector{Yaml::Entry{entry.key, map}}});
    }
  }
  return pieces;
}

/// Of a message "FILE:LINE: ...".
Problem problem_of(const std::string& message, const std::string& file) {
  Problem problem{file, 1, message};
  const std::string start = printable(file) + ":";
  const std::size_t colon = message.find(": ", start.size());
  if (!message.starts_with(start) || colon == std::string::npos) return problem;
  problem.line = static_cast<int>(
      parse_number(message.substr(start.size(), colon - start.size())).value_or(1));
  problem.message = message.substr(colon + 2);
  return problem;
}

}  // namespace

Result<GpuConfig> parse_gpu_config(const std::string& text, const std::string& file) {
  return read_root(GF_TRY(read_yaml(text, file)), file);
}

Checked check_gpu_config(const std::string& text, const std::string& file) {
  Checked checked;
  const auto root = read_yaml(text, file);
  if (!root) {
    checked.problems.push_back(problem_of(root.error().message, file));
    return checked;
  }
  for (const Yaml& piece : pieces_of(*root)) {
    const auto read = read_root(piece, file);
    if (!read) checked.problems.push_back(problem_of(read.error().message, file));
  }
  if (!checked.problems.empty()) return checked;
  // What is wrong only together: a model that is there under two names.
  if (const auto whole = read_root(*root, file); !whole) {
    checked.problems.push_back(problem_of(whole.error().message, file));
  }
  return checked;
}

namespace {

std::string resources_text(const GpuResources& resources) {
  std::vector<std::string> pairs;
  for (const auto& [vendor, name] : resources.names) pairs.push_back(vendor + "=" + name);
  return join(pairs, ", ");
}

std::string specs_text(const GpuConfig& config) {
  std::vector<std::string> pairs;
  for (const auto& [model, memory] : config.memory_specs) {
    pairs.push_back(model + "=" + memory_text(memory));
  }
  return join(pairs, ", ");
}

}  // namespace

std::vector<GpuSetting> gpu_settings(const GpuConfig& config) {
  constexpr std::chrono::seconds kInterval{5};  // of sources that have to be asked
  const GpuConfig usual;
  return {{"gpu_resource",
           resources_text(config.resources),
           resources_text(usual.resources),
           "map",
           "what a cluster calls the GPUs of a vendor"},
          {"default_gpu_resource_name",
           config.resources.default_name,
           usual.resources.default_name,
           "text",
           "of requests that name no vendor"},
          {"gpu_memory_specs",
           specs_text(config),
           "",
           "map",
           "memory of a model whose driver does not say"},
          {"monitor_update_interval",
           duration_text(config.monitor_update_interval.value_or(kInterval)),
           duration_text(kInterval),
           "duration",
           "time between readings of the devices"},
          {"resource_change_threshold",
           config.resource_change_threshold ? share_text(*config.resource_change_threshold) : "",
           "",
           "fraction",
           "utilisation and power that change by less are not taken up; changes beyond it are "
           "logged"}};
}

Result<GpuConfig> read_gpu_config_file(const std::string& path) {
  return parse_gpu_config(GF_TRY(os::read_file(path, kMaxYamlText)), path);
}

std::string gpu_config_path(const std::string& gflow_toml) {
  const auto named = os::environment("GFLOW_GPU_CONFIG");
  if (named && !named->empty()) return *named;
  const std::string beside = gflow_toml.substr(0, gflow_toml.rfind('/') + 1) + "gpu_config.yaml";
  return os::exists(beside) ? beside : "";
}

Result<GpuConfig> read_gpu_config(const std::string& gflow_toml) {
  const std::string path = gpu_config_path(gflow_toml);
  if (path.empty()) return GpuConfig();
  return parse_gpu_config(GF_TRY(os::read_regular_file(path, kMaxYamlText)), path);
}

}  // namespace gflow::config
