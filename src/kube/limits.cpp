// SPDX-License-Identifier: Apache-2.0
#include "kube/limits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::kube {
namespace {

constexpr std::uint64_t kMaxGpus = 100'000;
constexpr std::string_view kOfEach = "max_gpus_per_namespace";
constexpr std::string_view kOfOne = "max_gpus_of.";

}  // namespace

Limits limits_of(const nlohmann::json& config_map, const engine::GpuQuota& before) {
  Limits limits;
  for (const auto& [key, value] : part(config_map, "data").items()) {
    const bool is_of_one = key.starts_with(kOfOne) && key.size() > kOfOne.size();
    if (!is_of_one && key != kOfEach) {
      limits.mistakes.push_back(fmt::format("there is no limit '{}', ignoring it", printable(key)));
      continue;
    }
    const auto gpus =
        value.is_string() ? parse_number(trim(value.get<std::string>())) : std::nullopt;
    const std::string name = is_of_one ? key.substr(kOfOne.size()) : "";
    if (!gpus || *gpus > kMaxGpus) {
      limits.mistakes.push_back(fmt::format(
          "{} is not a number from 0 to {}, keeping what was", printable(key), kMaxGpus));
      if (!is_of_one) limits.quota.per_user = before.per_user;
      if (const auto was = before.users.find(name); was != before.users.end()) {
        limits.quota.users.insert(*was);
      }
      continue;
    }
    (is_of_one ? limits.quota.users[name] : limits.quota.per_user) = static_cast<int>(*gpus);
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
