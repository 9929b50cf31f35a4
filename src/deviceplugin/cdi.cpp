// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/cdi.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/text.h"
#include "config/yaml.h"
#include "kube/fields.h"
#include "os/file.h"

namespace gflow::deviceplugin {
namespace {

using Json = nlohmann::json;
using config::Yaml;
using kube::part;

constexpr std::string_view kFileEnd = ".json";

std::string file_start(std::string_view name) { return fmt::format("gflow-{}-", name); }

/// Nobody's but ours.
bool is_own_file(std::string_view name) {
  return !kAllocations.key_of_file(name).empty() || !kClaims.key_of_file(name).empty();
}

/// The only values of a specification that are no text.
constexpr std::array<std::string_view, 7> kNumbers = {
    "major", "minor", "fileMode", "uid", "gid", "timeout", "additionalGids"};
constexpr std::array<std::string_view, 3> kSwitches = {
    "enableCMT", "enableMBM", "enableMonitoring"};

Json scalar(const std::string& key, const std::string& text) {
  if (std::ranges::find(kSwitches, key) != kSwitches.end()) return text == "true";
  if (std::ranges::find(kNumbers, key) == kNumbers.end()) return text;
  if (text.size() > 1 && text.starts_with('0')) {  // "0666" is octal in YAML
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number, 8);
    if (read.ec == std::errc{} && read.ptr == end) return number;
  }
  const auto number = parse_number(text);
  return number ? Json(*number) : Json(text);
}

/// `key`: under which it stands.
Json json_of(const Yaml& yaml, const std::string& key) {
  if (const auto* text = std::get_if<std::string>(&yaml.value)) return scalar(key, *text);
  if (const auto* list = std::get_if<std::vector<Yaml>>(&yaml.value)) {
    Json made = Json::array();
    for (const Yaml& one : *list) made.push_back(json_of(one, key));
    return made;
  }
  if (const auto* map = std::get_if<std::vector<Yaml::Entry>>(&yaml.value)) {
    Json made = Json::object();
    for (const Yaml::Entry& one : *map) made[one.key] = json_of(one.value, one.key);
    return made;
  }
  return {};
}

Result<Json> read_specification(const std::string& path) {
  const std::string text = GF_TRY(os::read_regular_file(path));
  if (!path.ends_with(kFileEnd)) return json_of(GF_TRY(config::read_yaml(text, path)), "");
  Json read = Json::parse(text, nullptr, false);
  if (read.is_discarded()) return fail(Code::Usage, fmt::format("'{}' is no JSON", path));
  return read;
}

bool is_specification(std::string_view name) {
  return name.ends_with(kFileEnd) || name.ends_with(".yaml") || name.ends_with(".yml");
}

struct Specifications {
  std::vector<Json> found;
  std::string unread;  ///< why a file could not be read; "" if all could
};

/// All of a kind, those that win first.
Specifications specifications(const std::vector<std::string>& directories, std::string_view kind) {
  Specifications all;
  for (auto at = directories.rbegin(); at != directories.rend(); ++at) {
    auto names = os::names_in(*at);
    if (!names) {
      if (names.error().code != Code::NotFound) all.unread = names.error().message;
      continue;
    }
    std::ranges::sort(*names);
    for (const std::string& name : *names) {
      if (!is_specification(name) || is_own_file(name)) continue;
      auto read = read_specification(*at + "/" + name);
      if (!read) {
        all.unread = read.error().message;
      } else if (kube::text(*read, "kind") == kind) {
        all.found.push_back(*std::move(read));
      }
    }
  }
  return all;
}

/// Versions are numbers between dots.
bool is_older(std::string_view a, std::string_view b) {
  const auto numbers = [](std::string_view version) {
    std::array<std::uint64_t, 3> read{};
    const auto pieces = split(version, '.');
    for (std::size_t i = 0; i < std::min(pieces.size(), read.size()); ++i) {
      read[i] = parse_number(pieces[i]).value_or(0);
    }
    return read;
  };
  return numbers(a) < numbers(b);
}

struct Found {
  const Json* specification;
  const Json* device;
};

std::optional<Found> find_device(const std::vector<Json>& specifications, const Device& device) {
  for (const std::string& name : {device.uuid, std::to_string(device.index)}) {
    for (const Json& one : specifications) {
      for (const Json& named : part(one, "devices")) {
        if (kube::text(named, "name") == name) return Found{&one, &named};
      }
    }
  }
  return std::nullopt;
}

std::unexpected<Error> unknown(std::string_view kind,
                               const Device& device,
                               const std::string& unread) {
  const std::string_view help =
      kind.starts_with("nvidia")
          ? "; 'nvidia-ctk cdi generate --output /var/run/cdi/nvidia.yaml' on the node makes one"
          : "; the vendor's tools make one";
  return fail(Code::NotFound,
              fmt::format("no CDI specification of {} on this node names the GPU {} ({}){}{}",
                          kind,
                          device.uuid,
                          device.index,
                          help,
                          unread.empty() ? "" : "; not read: " + printable(unread)));
}

}  // namespace

std::string CdiKind::text() const { return fmt::format("gflow/{}", name_); }

std::string CdiKind::device(std::string_view key) const {
  return fmt::format("{}={}", text(), key);
}

std::string CdiKind::file_name(std::string_view key) const {
  return fmt::format("{}{}{}", file_start(name_), key, kFileEnd);
}

std::string CdiKind::key_of_file(std::string_view name) const {
  constexpr std::string_view kBeingWritten = ".new";
  if (name.ends_with(kBeingWritten)) name.remove_suffix(kBeingWritten.size());
  const std::string start = file_start(name_);
  if (!name.starts_with(start) || !name.ends_with(kFileEnd)) return "";
  name.remove_prefix(start.size());
  name.remove_suffix(kFileEnd.size());
  return std::string(name);
}

void add_edits(Edits& to, const Edits& more) {
  if (is_older(to.version, more.version)) to.version = more.version;
  for (const auto& [key, value] : more.edits.items()) {
    Json& there = to.edits[key];
    if (there.is_array() && value.is_array()) {
      there.insert(there.end(), value.begin(), value.end());
    } else {
      there = value;
    }
  }
}

Result<Edits> vendor_edits(const std::vector<std::string>& directories,
                           std::string_view kind,
                           const std::vector<const Device*>& devices) {
  const auto [all, unread] = specifications(directories, kind);
  Edits edits;
  std::vector<const Json*> begun;
  const auto add = [&edits](const Json& version, const Json& of) {
    const Json& what = part(of, "containerEdits");
    if (what.is_object()) add_edits(edits, {kube::text(version, "cdiVersion"), what});
  };
  for (const Device* device : devices) {
    const auto found = find_device(all, *device);
    if (!found) return unknown(kind, *device, unread);
    if (std::ranges::find(begun, found->specification) == begun.end()) {
      add(*found->specification, *found->specification);
      begun.push_back(found->specification);
    }
    add(*found->specification, *found->device);
  }
  return edits;
}

std::string cdi_text(CdiKind kind, std::string_view key, const Edits& edits) {
  const nlohmann::ordered_json device = {{"name", key}, {"containerEdits", edits.edits}};
  return nlohmann::ordered_json{{"cdiVersion", edits.version},
                                {"kind", kind.text()},
                                {"devices", nlohmann::ordered_json::array({device})}}
             .dump(2) +
         "\n";
}

}  // namespace gflow::deviceplugin
