// SPDX-License-Identifier: Apache-2.0
#include "core/task_payload.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

namespace gflow {
namespace {

std::string_view name_of_variable(std::string_view variable) {
  return variable.substr(0, variable.find('='));
}

void set_over(std::vector<std::string>& environment, std::string variable) {
  const auto at = std::ranges::find(environment, name_of_variable(variable), name_of_variable);
  if (at == environment.end()) {
    environment.push_back(std::move(variable));
  } else {
    *at = std::move(variable);
  }
}

}  // namespace

Payload complete(const Payload* shared, Payload own) {
  if (shared == nullptr) return own;
  Payload whole = *shared;
  if (!own.argv.empty()) whole.argv = std::move(own.argv);
  for (std::string& variable : own.environment) set_over(whole.environment, std::move(variable));
  return whole;
}

std::size_t bytes_of(const TaskPayload& payload) {
  return bytes_of(payload.own) + (payload.shared ? bytes_of(*payload.shared) : 0);
}

}  // namespace gflow
