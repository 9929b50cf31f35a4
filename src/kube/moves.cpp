// SPDX-License-Identifier: Apache-2.0
#include "kube/moves.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/job.h"
#include "kube/fields.h"
#include "kube/limits.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr const char* kRequest = "request";
constexpr const char* kAnswer = "answer";

Json listed(const std::vector<PodName>& pods) {
  Json all = Json::array();
  for (const PodName& one : pods) {
    all.push_back({{"namespace", one.name_space}, {"name", one.name}, {"uid", one.uid}});
  }
  return all;
}

std::vector<PodName> pod_names_in(const Json& list) {
  std::vector<PodName> pods;
  if (!list.is_array()) return pods;
  for (const Json& one : list) {
    pods.push_back({text(one, "namespace"), text(one, "name"), text(one, "uid")});
  }
  return pods;
}

/// As Kubernetes has them: whatever else it is goes into no log.
bool is_name(const std::string& text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
}

bool is_named(const PodName& pod) {
  return is_name(pod.name_space) && is_name(pod.name) && !pod.uid.empty();
}

/// Some, not too many, and each once.
bool are_named(const std::vector<PodName>& pods) {
  if (pods.empty() || pods.size() > kMostPodsAsked || !std::ranges::all_of(pods, is_named)) {
    return false;
  }
  std::set<std::string> uids;
  for (const PodName& pod : pods) uids.insert(pod.uid);
  return uids.size() == pods.size();
}

std::optional<MovesAsked> asked_in(const std::string& document) {
  const Json read = Json::parse(document, nullptr, false);
  MovesAsked asked{
      text(read, "id"), pod_names_in(part(read, "pods")), pod_names_in(part(read, "moves"))};
  const bool is_whole = !asked.id.empty() && are_named(asked.pods) && are_named(asked.moves);
  return is_whole ? std::optional(std::move(asked)) : std::nullopt;
}

std::optional<MovesAnswer> answer_in(const std::string& document) {
  const Json read = Json::parse(document, nullptr, false);
  const auto state = std::ranges::find(kMovesStates, text(read, "state"));
  if (state == kMovesStates.end()) return std::nullopt;
  return MovesAnswer{text(read, "id"),
                     static_cast<MovesState>(state - kMovesStates.begin()),
                     text(read, "why"),
                     std::clamp(number(read, "priority"), 0, kMaxPriority)};
}

std::string text_of_document(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string patch_of(const std::string& version, Json data) {
  return text_of_document(
      {{"metadata", {{"resourceVersion", version}}}, {"data", std::move(data)}});
}

}  // namespace

std::string moves_name_of(const std::string& scheduler) {
  return name_in_cluster(scheduler) + "-moves";
}

std::string config_map_path(const std::string& name_space, const std::string& name) {
  return fmt::format("/api/v1/namespaces/{}/configmaps/{}", name_space, name);
}

MovesRecord moves_record_of(const Json& config_map) {
  const Json& data = part(config_map, "data");
  MovesRecord record;
  record.version = text(part(config_map, "metadata"), "resourceVersion");
  record.asked = asked_in(text(data, kRequest));
  if (!record.asked) return record;
  record.answer = answer_in(text(data, kAnswer));
  if (record.answer && record.answer->id != record.asked->id) record.answer.reset();
  return record;
}

std::string patch_to_ask(const MovesAsked& asked, const std::string& version) {
  const Json request = {
      {"id", asked.id}, {"pods", listed(asked.pods)}, {"moves", listed(asked.moves)}};
  return patch_of(version, {{kRequest, text_of_document(request)}, {kAnswer, nullptr}});
}

std::string patch_to_withdraw(const std::string& version) {
  return patch_of(version, {{kRequest, nullptr}});
}

std::string patch_to_answer(const MovesAnswer& answer, const std::string& version) {
  Json document = {{"id", answer.id},
                   {"state", kMovesStates.at(static_cast<std::size_t>(answer.state))}};
  if (!answer.why.empty()) document["why"] = answer.why;
  if (answer.priority > 0) document["priority"] = answer.priority;
  return patch_of(version, {{kAnswer, text_of_document(document)}});
}

}  // namespace gflow::kube
