// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

/// Labels, and what is selected by them.
namespace gflow::kube {

using Words = std::map<std::string, std::string>;

/// matchExpressions and matchFields of a term: all of them have to hold.
struct Match {
  std::string key;
  std::string op;                   ///< In, NotIn, Exists, DoesNotExist, Gt, Lt
  std::vector<std::string> values;  ///< in order
  bool is_field = false;            ///< of the node's name, not of a label

  friend auto operator<=>(const Match&, const Match&) = default;
};
using Term = std::vector<Match>;
/// Selects nothing where there is none, and everything without conditions.
using Selector = std::optional<Term>;

[[nodiscard]] bool matches(const Match& match, const Words& labels);
[[nodiscard]] bool selects(const Selector& selector, const Words& labels);

/// A LabelSelector of Kubernetes; those that say the same are equal.
[[nodiscard]] Selector label_selector_of(const nlohmann::json& written);
/// As a selector has them: in order, each once.
void put_in_order(Term& term);
/// matchExpressions or matchFields.
[[nodiscard]] Match match_of(const nlohmann::json& written);
/// One of nodes: both.
[[nodiscard]] Term node_term_of(const nlohmann::json& written);

}  // namespace gflow::kube
