// SPDX-License-Identifier: Apache-2.0
#include "runner/cgroup_layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "base/text.h"

namespace gflow::runner {
namespace {

struct Mount {
  std::string root;
  std::string point;
  std::string type;
  std::string options;
};

/// mountinfo writes space, tab, line end and backslash as \ooo (proc(5)).
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto octal = [&](std::size_t at) { return text[at] >= '0' && text[at] <= '7'; };
    if (text[i] == '\\' && i + 3 < text.size() && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::optional<Mount> parse_mount(std::string_view line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos) return std::nullopt;
  const auto before = split(line.substr(0, dash), ' ');
  const auto after = split(line.substr(dash + 3), ' ');
  if (before.size() < 5 || after.size() < 3) return std::nullopt;
  return Mount{
      unescape(before[3]), unescape(before[4]), std::string(after[0]), std::string(after[2])};
}

/// Own group per controller; "" is the v2 one.
std::map<std::string, std::string> own_groups(std::string_view text) {
  std::map<std::string, std::string> groups;
  for (const std::string_view line : split(text, '\n')) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    for (const auto controller : split(line.substr(first + 1, second - first - 1), ',')) {
      groups[std::string(controller)] = line.substr(second + 1);
    }
  }
  return groups;
}

std::string directory_in(const Mount& mount, const std::string& group) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  const bool visible = group.starts_with(root) && !group.starts_with("/..") &&
                       (group.size() == root.size() || group[root.size()] == '/');
  if (!visible) return {};
  const std::string below = group.substr(root.size());
  return below == "/" ? mount.point : mount.point + below;
}

}  // namespace

CgroupLayout parse_cgroup_layout(std::string_view mountinfo, std::string_view cgroup) {
  const auto groups = own_groups(cgroup);
  CgroupLayout layout;
  const auto place =
      [&](const Mount& mount, const std::string& controller, std::string& directory) {
        const auto group = groups.find(controller);
        if (group != groups.end() && directory.empty())
          directory = directory_in(mount, group->second);
      };
  for (const std::string_view line : split(mountinfo, '\n')) {
    const auto mount = parse_mount(line);
    if (!mount) continue;
    if (mount->type == "cgroup2") place(*mount, "", layout.unified);
    if (mount->type != "cgroup") continue;
    const auto options = split(mount->options, ',');
    const auto has = [&](const char* name) {
      return std::ranges::find(options, name) != options.end();
    };
    if (has("memory")) place(*mount, "memory", layout.memory);
    if (has("cpu")) place(*mount, "cpu", layout.cpu);
    if (has("pids")) place(*mount, "pids", layout.pids);
    if (has("cpuset")) place(*mount, "cpuset", layout.cpuset);
    if (has("devices")) place(*mount, "devices", layout.devices);
  }
  return layout;
}

}  // namespace gflow::runner
