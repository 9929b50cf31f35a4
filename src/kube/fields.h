// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

/// Reading documents of which nobody promises that a field is there, or is what it should be.
namespace gflow::kube {

/// What stands under the key; null where this is no object or has none.
[[nodiscard]] const nlohmann::json& part(const nlohmann::json& of, const char* key);
/// The text under the key; "" where there is none.
[[nodiscard]] std::string text(const nlohmann::json& of, const char* key);
/// The annotation of this name; "" where there is none.
[[nodiscard]] std::string noted(const nlohmann::json& metadata, std::string_view name);
/// The number under the key.
[[nodiscard]] int number(const nlohmann::json& of, const char* key, int otherwise = 0);

}  // namespace gflow::kube
