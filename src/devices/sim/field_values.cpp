// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/field_values.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow::devices::sim {
namespace {

constexpr Range kPid{1, 1 << 22};  // PID_MAX_LIMIT of a 64-bit kernel

Result<SimProcess> read_process(const Yaml& node, const Fields& of, std::size_t at) {
  const std::string path = fmt::format("{}[{}]", of.path_of("processes"), at);
  const Fields fields =
      GF_TRY(Fields::of(node, of.file(), path, {"pid", "user", "name", "memory", "kind"}));
  const auto pid = GF_TRY(fields.number("pid", kPid));
  if (!pid) return fields.error("pid", "is needed");
  SimProcess made;
  made.process.pid = static_cast<int>(*pid);
  made.process.user = GF_TRY(fields.text("user")).value_or("");
  made.process.name = GF_TRY(fields.text("name")).value_or("");
  made.process.memory = GF_TRY(fields.memory("memory"));
  const auto kind = GF_TRY(choice(fields, "kind", {"compute", "graphics"}));
  made.kind = kind == 1 ? ProcessKind::Graphics : ProcessKind::Compute;
  return made;
}

}  // namespace

Result<std::optional<std::size_t>> choice(const Fields& fields,
                                          std::string_view key,
                                          const std::vector<std::string>& words) {
  const auto text = GF_TRY(fields.text(key));
  if (!text) return std::optional<std::size_t>();
  const auto found = std::ranges::find(words, *text);
  if (found == words.end()) {
    return fields.error(key,
                        fmt::format("'{}' is none of {}", printable(*text), join(words, ", ")));
  }
  return static_cast<std::size_t>(found - words.begin());
}

Result<std::vector<SimProcess>> read_processes(const Fields& fields) {
  const std::vector<Yaml> nodes = GF_TRY(fields.list("processes"));
  if (nodes.size() > kMaxProcesses) {
    return fields.error("processes", fmt::format("at most {} processes", kMaxProcesses));
  }
  std::vector<SimProcess> processes;
  for (std::size_t at = 0; at < nodes.size(); ++at) {
    processes.push_back(GF_TRY(read_process(nodes[at], fields, at)));
  }
  return processes;
}

Result<std::optional<std::string>> read_uuid(const Fields& fields) {
  constexpr std::size_t kMost = 80;
  auto uuid = GF_TRY(fields.text("uuid"));
  if (!uuid || (!uuid->empty() && uuid->size() <= kMost && printable(*uuid) == *uuid)) return uuid;
  return fields.error("uuid", fmt::format("has to be 1 to {} visible characters", kMost));
}

}  // namespace gflow::devices::sim
