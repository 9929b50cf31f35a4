// SPDX-License-Identifier: Apache-2.0
#include "kube/limits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

constexpr std::uint64_t kMaxGpus = 100'000;
constexpr std::string_view kOfEach = "max_gpus_per_namespace";
constexpr std::string_view kOfOne = "max_gpus_of.";

/// What stays in place of a number that cannot be read; `name`: of which namespace, "" of each.
std::optional<int> limit_in(const engine::GpuQuota& quota, const std::string& name) {
  if (const auto found = quota.users.find(name); found != quota.users.end()) return found->second;
  if (name.empty() && quota.per_user > 0) return quota.per_user;
  return std::nullopt;
}

}  // namespace

std::string name_in_cluster(const std::string& scheduler) {
  return scheduler == "gflow" ? "gflow-kube" : "gflow-kube-" + scheduler;
}

std::string limits_name_of(const std::string& scheduler) {
  return name_in_cluster(scheduler) + "-limits";
}

Limits limits_of(const nlohmann::json& config_map,
                 const engine::GpuQuota& before,
                 const Levels& levels_before) {
  Limits limits;
  LevelsRead read = levels_of(config_map, levels_before);
  limits.are_levels_unread = read.are_unread();
  limits.levels = std::move(read.levels);
  if (!read.mistake.empty()) limits.mistakes.push_back(std::move(read.mistake));
  for (const auto& [key, value] : part(config_map, "data").items()) {
    if (key == kLevelsKey) continue;
    const bool is_of_one = key.starts_with(kOfOne) && key.size() > kOfOne.size();
    if (!is_of_one && key != kOfEach) {
      limits.mistakes.push_back(fmt::format("there is no limit '{}', ignoring it", printable(key)));
      continue;
    }
    const std::string written = value.is_string() ? value.get<std::string>() : "";
    const std::uint64_t gpus = parse_number(trim(written)).value_or(kMaxGpus + 1);
    const std::string name = is_of_one ? key.substr(kOfOne.size()) : "";
    std::optional<int> limit = limit_in(before, name);
    if (gpus <= kMaxGpus) {
      limit = static_cast<int>(gpus);
    } else {
      limits.mistakes.push_back(
          fmt::format("{} is not a number from 0 to {}, {}",
                      printable(key),
                      kMaxGpus,
                      limit ? fmt::format("keeping {}", *limit) : "and there was none to keep"));
    }
    if (limit) (is_of_one ? limits.quota.users[name] : limits.quota.per_user) = *limit;
  }
  return limits;
}

std::string to_text(const engine::GpuQuota& quota) {
  std::vector<std::string> all;
  if (quota.per_user > 0) all.push_back(fmt::format("{} GPUs for each namespace", quota.per_user));
  for (const auto& [name, gpus] : quota.users) {
    all.push_back(gpus == 0 ? fmt::format("of {} none", name)
                            : fmt::format("of {} {}", name, gpus));
  }
  return all.empty() ? "none" : fmt::format("{}", fmt::join(all, ", "));
}

}  // namespace gflow::kube
