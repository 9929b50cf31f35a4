// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "kube/objects.h"

/// What kube-scheduler demands of a node whatever is left there, by its rules: TaintToleration,
/// NodeUnschedulable, NodeAffinity.
namespace gflow::kube {

[[nodiscard]] bool tolerates(const std::vector<Toleration>& tolerations, const Taint& taint);
[[nodiscard]] bool matches(const Match& match, const Node& node);
/// Whether one of the terms holds; one without conditions is met by none.
[[nodiscard]] bool meets_any(const Node& node, const std::vector<Term>& terms);

/// Whether none of its taints keeps a pod with these tolerations away.
[[nodiscard]] bool is_tolerated(const Node& node, const std::vector<Toleration>& tolerations);
/// Whether it is one that nodeSelector and node affinity ask for.
[[nodiscard]] bool is_asked_for(const Node& node, const Wishes& wishes);

/// Why the pod may not go to the node, in the words of kube-scheduler: "node(s) were
/// unschedulable", "node(s) had untolerated taint(s)"; "" if it may.
[[nodiscard]] std::string refusal_of(const Node& node, const Wishes& wishes);

/// Whether it takes no usual pods: it is cordoned, or what Kubernetes finds of it (not ready,
/// unreachable, full) keeps them away. Taints of others say for whom a node is.
[[nodiscard]] bool is_closed(const Node& node);

/// Whether two ports cannot be had at once on one machine.
[[nodiscard]] bool collide(const HostPort& a, const HostPort& b);

}  // namespace gflow::kube
