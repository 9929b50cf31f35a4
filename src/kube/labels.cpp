// SPDX-License-Identifier: Apache-2.0
#include "kube/labels.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

bool compares(const Match& match, const std::string& value) {
  const auto has = whole(value);
  const auto wants = match.values.size() == 1 ? whole(match.values.front()) : std::nullopt;
  if (!has || !wants) return false;
  return match.op == "Gt" ? *has > *wants : *has < *wants;
}

}  // namespace

bool matches(const Match& match, const Words& labels) {
  const auto at = labels.find(match.key);
  const bool is_there = at != labels.end();
  const bool is_listed = is_there && std::ranges::binary_search(match.values, at->second);
  if (match.op == "In") return is_listed;
  if (match.op == "NotIn") return !is_listed;
  if (match.op == "Exists") return is_there;
  if (match.op == "DoesNotExist") return !is_there;
  if (match.op == "Gt" || match.op == "Lt") return is_there && compares(match, at->second);
  return false;
}

bool selects(const Selector& selector, const Words& labels) {
  return selector && std::ranges::all_of(*selector, [&labels](const Match& match) {
           return matches(match, labels);
         });
}

Match match_of(const nlohmann::json& written) {
  Match match{text(written, "key"), text(written, "operator"), {}};
  for (const nlohmann::json& value : part(written, "values")) {
    if (value.is_string()) match.values.push_back(value.get<std::string>());
  }
  std::ranges::sort(match.values);
  return match;
}

Term node_term_of(const nlohmann::json& written) {
  Term term;
  for (const nlohmann::json& one : part(written, "matchExpressions")) term.push_back(match_of(one));
  for (const nlohmann::json& one : part(written, "matchFields")) {
    term.push_back(match_of(one));
    term.back().is_field = true;
  }
  return term;
}

void put_in_order(Term& term) {
  std::ranges::sort(term);
  term.erase(std::ranges::unique(term).begin(), term.end());
}

Selector label_selector_of(const nlohmann::json& written) {
  if (!written.is_object()) return std::nullopt;
  Term term;
  for (const auto& [key, value] : part(written, "matchLabels").items()) {
    if (value.is_string()) term.push_back({key, "In", {value.get<std::string>()}});
  }
  for (const nlohmann::json& one : part(written, "matchExpressions")) {
    term.push_back(match_of(one));
  }
  put_in_order(term);
  return term;
}

}  // namespace gflow::kube
