// SPDX-License-Identifier: Apache-2.0
#include "core/task_payload.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
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

Payload task_payload(std::uint64_t number) {
  return {.environment = {fmt::format("GFLOW_ARRAY_TASK_ID={}", number)}};
}

Payload complete(const Payload* shared, Payload own) {
  if (shared == nullptr) return own;
  Payload whole = *shared;
  if (!own.argv.empty()) whole.argv = std::move(own.argv);
  for (std::string& variable : own.environment) set_over(whole.environment, std::move(variable));
  return whole;
}

std::vector<std::int64_t> bytes_of_each(std::span<const TaskPayload> payloads) {
  std::map<const Payload*, std::size_t> sharers;
  for (const TaskPayload& payload : payloads) sharers[payload.shared.get()] += payload.count();
  std::map<const Payload*, std::size_t> parts;  // rounded up
  for (const auto& [shared, count] : sharers) {
    parts[shared] = shared == nullptr ? 0 : (bytes_of(*shared) + count - 1) / count;
  }
  std::vector<std::int64_t> bytes;
  for (const TaskPayload& payload : payloads) {
    const auto& tasks = payload.tasks;
    const Payload numbered = tasks ? task_payload(tasks->number(tasks->count - 1)) : Payload{};
    bytes.push_back(static_cast<std::int64_t>(bytes_of(payload.own) + bytes_of(numbered) +
                                              parts.at(payload.shared.get())));
  }
  return bytes;
}

}  // namespace gflow
