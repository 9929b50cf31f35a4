// SPDX-License-Identifier: Apache-2.0
#include "kube/neighbour_rules.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

std::vector<std::string> texts(const Json& of, const char* key) {
  std::vector<std::string> read;
  for (const Json& one : part(of, key)) {
    if (one.is_string()) read.push_back(one.get<std::string>());
  }
  std::ranges::sort(read);
  return read;
}

/// matchLabelKeys and mismatchLabelKeys are in the labelSelector already: the API server puts them
/// there when it takes the pod, and kube-scheduler looks nowhere else, either.
NeighbourTerm term_of(const Json& written, const std::string& name_space) {
  NeighbourTerm term{text(written, "topologyKey"),
                     label_selector_of(part(written, "labelSelector")),
                     texts(written, "namespaces"),
                     label_selector_of(part(written, "namespaceSelector"))};
  if (term.name_spaces.empty() && !term.name_space_selector) term.name_spaces = {name_space};
  return term;
}

std::vector<NeighbourTerm> terms_of(const Json& written, const std::string& name_space) {
  std::vector<NeighbourTerm> terms;
  for (const Json& one : part(written, "requiredDuringSchedulingIgnoredDuringExecution")) {
    terms.push_back(term_of(one, name_space));
  }
  return terms;
}

Spread spread_of(const Json& written, const std::string& name_space, const Words& labels) {
  Spread spread;
  spread.topology_key = text(written, "topologyKey");
  spread.max_skew = number(written, "maxSkew", 1);
  spread.min_domains = number(written, "minDomains", 1);
  spread.pods = label_selector_of(part(written, "labelSelector"));
  for (const std::string& key : texts(written, "matchLabelKeys")) {
    const auto at = labels.find(key);
    if (at != labels.end() && spread.pods) spread.pods->push_back({key, "In", {at->second}});
  }
  if (spread.pods) put_in_order(*spread.pods);
  spread.name_space = name_space;
  spread.counts_itself = selects(spread.pods, labels);
  spread.honours_affinity = text(written, "nodeAffinityPolicy") != "Ignore";
  spread.honours_taints = text(written, "nodeTaintsPolicy") == "Honor";
  return spread;
}

}  // namespace

NeighbourRules neighbour_rules_of(const Json& spec,
                                  const std::string& name_space,
                                  const Words& labels) {
  const Json& affinity = part(spec, "affinity");
  NeighbourRules rules{terms_of(part(affinity, "podAffinity"), name_space),
                       terms_of(part(affinity, "podAntiAffinity"), name_space),
                       {}};
  for (const Json& one : part(spec, "topologySpreadConstraints")) {
    if (text(one, "whenUnsatisfiable") == "ScheduleAnyway") continue;
    rules.spread.push_back(spread_of(one, name_space, labels));
  }
  return rules;
}

}  // namespace gflow::kube
