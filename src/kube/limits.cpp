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

Limits limits_of(const nlohmann::json& config_map) {
  Limits limits;
  for (const auto& [key, value] : part(config_map, "data").items()) {
    const bool is_of_one = key.starts_with(kOfOne) && key.size() > kOfOne.size();
    if (!is_of_one && key != kOfEach) {
      limits.mistakes.push_back(fmt::format("there is no limit '{}', ignoring it", printable(key)));
      continue;
    }
    const auto gpus =
        value.is_string() ? parse_number(trim(value.get<std::string>())) : std::nullopt;
    if (!gpus || *gpus > kMaxGpus) {
      limits.mistakes.push_back(
          fmt::format("{} is not a number from 0 to {}, ignoring it", printable(key), kMaxGpus));
      continue;
    }
    int& limit = is_of_one ? limits.quota.users[key.substr(kOfOne.size())] : limits.quota.per_user;
    limit = static_cast<int>(*gpus);
  }
  return limits;
}

}  // namespace gflow::kube
