// SPDX-License-Identifier: Apache-2.0
#include "kube/fields.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace gflow::kube {

const nlohmann::json& part(const nlohmann::json& of, const char* key) {
  static const nlohmann::json none;
  if (!of.is_object()) return none;
  const auto at = of.find(key);
  return at == of.end() ? none : *at;
}

std::string text(const nlohmann::json& of, const char* key) {
  const nlohmann::json& value = part(of, key);
  return value.is_string() ? value.get<std::string>() : std::string();
}

std::string noted(const nlohmann::json& metadata, std::string_view name) {
  return text(part(metadata, "annotations"), std::string(name).c_str());
}

int number(const nlohmann::json& of, const char* key, int otherwise) {
  const nlohmann::json& value = part(of, key);
  if (!value.is_number_integer()) return otherwise;
  const auto whole = value.get<std::int64_t>();
  const bool fits =
      whole >= std::numeric_limits<int>::min() && whole <= std::numeric_limits<int>::max();
  return fits ? static_cast<int>(whole) : otherwise;
}

}  // namespace gflow::kube
