// SPDX-License-Identifier: Apache-2.0
#include "kube/objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/fields.h"
#include "kube/quantity.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

bool is_true(const Json& of, const char* key) {
  const Json& value = part(of, key);
  return value.is_boolean() && value.get<bool>();
}

Words words(const Json& of, const char* key) {
  Words read;
  for (const auto& [name, value] : part(of, key).items()) {
    if (value.is_string()) read[name] = value.get<std::string>();
  }
  return read;
}

Amounts amounts(const Json& of, const char* key, std::string& mistake) {
  Amounts read;
  for (const auto& [name, value] : part(of, key).items()) {
    const auto amount = read_milli(value.is_string() ? value.get<std::string>() : value.dump());
    if (amount) read[name] = *amount;
    if (!amount && mistake.empty()) mistake = name + ": " + amount.error().message;
  }
  return read;
}

/// What is not requested is what it is limited to, as the API server has it.
Amounts requests_of(const Json& container, std::string& mistake) {
  const Json& resources = part(container, "resources");
  Amounts all = amounts(resources, "requests", mistake);
  all.merge(amounts(resources, "limits", mistake));
  return all;
}

void raise(Amounts& to, const Amounts& others) {
  for (const auto& [name, amount] : others) to[name] = std::max(to[name], amount);
}

Wishes wishes_of(const Json& spec) {
  Wishes wishes;
  wishes.node_selector = words(spec, "nodeSelector");
  const Json& required = part(part(part(spec, "affinity"), "nodeAffinity"),
                              "requiredDuringSchedulingIgnoredDuringExecution");
  if (required.is_object()) {
    wishes.affinity.emplace();
    for (const Json& term : part(required, "nodeSelectorTerms")) {
      wishes.affinity->push_back(node_term_of(term));
    }
  }
  for (const Json& one : part(spec, "tolerations")) {
    wishes.tolerations.push_back(
        {text(one, "key"), text(one, "operator"), text(one, "value"), text(one, "effect")});
  }
  std::ranges::sort(wishes.tolerations);
  return wishes;
}

std::vector<HostPort> ports_of(const Json& spec) {
  std::vector<HostPort> ports;
  const auto take = [&ports](const Json& container) {
    for (const Json& one : part(container, "ports")) {
      const int port = number(one, "hostPort");
      if (port > 0) ports.push_back({port, text(one, "protocol"), text(one, "hostIP")});
    }
  };
  for (const Json& container : part(spec, "containers")) take(container);
  for (const Json& container : part(spec, "initContainers")) {
    if (text(container, "restartPolicy") == "Always") take(container);
  }
  return ports;
}

std::vector<PodClaim> claims_of(const Json& spec, const std::string& pod) {
  std::vector<PodClaim> claims;
  for (const Json& volume : part(spec, "volumes")) {
    const std::string name = text(part(volume, "persistentVolumeClaim"), "claimName");
    if (!name.empty()) claims.push_back({name, false});
    if (!part(volume, "ephemeral").is_null()) {
      claims.push_back({pod + "-" + text(volume, "name"), true});
    }
  }
  std::ranges::sort(claims);
  claims.erase(std::ranges::unique(claims).begin(), claims.end());
  return claims;
}

/// A directory of the node, or one that is made for the pod and not in memory.
bool has_local_data(const Json& spec) {
  return std::ranges::any_of(part(spec, "volumes"), [](const Json& volume) {
    const Json& empty = part(volume, "emptyDir");
    return !part(volume, "hostPath").is_null() ||
           (!empty.is_null() && text(empty, "medium") != "Memory");
  });
}

std::vector<PodDevices> devices_of_pod(const Json& spec, const Json& status) {
  std::vector<PodDevices> all;
  for (const Json& one : part(spec, "resourceClaims")) {
    PodDevices made{text(one, "name"), text(one, "resourceClaimName")};
    made.is_own = made.claim.empty();
    for (const Json& told : part(status, "resourceClaimStatuses")) {
      if (!made.is_own || text(told, "name") != made.name) continue;
      made.claim = text(told, "resourceClaimName");
      made.is_none = made.claim.empty();
    }
    // One that it names twice it has once.
    const bool is_new =
        made.claim.empty() || std::ranges::find(all, made.claim, &PodDevices::claim) == all.end();
    if (is_new) all.push_back(std::move(made));
  }
  return all;
}

/// Hard wishes that nobody here judges: a pod with one is not placed, as it could be placed wrong.
std::vector<std::string> unjudged_of(const Json& spec, bool is_in_gang) {
  std::vector<std::string> found;
  const Json& claims = part(spec, "resourceClaims");
  if (!claims.empty() && is_in_gang) {
    found.emplace_back("resourceClaims and starts together with others");
  }
  for (const Json& one : claims) {
    const bool is_known =
        !text(one, "resourceClaimName").empty() || !text(one, "resourceClaimTemplateName").empty();
    if (!is_known && found.empty()) found.emplace_back("resourceClaims of an unknown kind");
  }
  return found;
}

/// Its condition PodScheduled; null if it has none.
const Json& scheduled_in(const Json& status) {
  static const Json none;
  for (const Json& one : part(status, "conditions")) {
    if (text(one, "type") == "PodScheduled") return one;
  }
  return none;
}

std::string told_in(const Json& status) {
  const Json& scheduled = scheduled_in(status);
  return text(scheduled, "status") == "False" ? text(scheduled, "message") : "";
}

std::optional<WallTime> started_in(const Json& status) {
  std::string at = text(status, "startTime");
  const Json& scheduled = scheduled_in(status);
  if (at.empty() && text(scheduled, "status") == "True") at = text(scheduled, "lastTransitionTime");
  const auto time = parse_rfc3339(at);
  return time ? std::optional(*time) : std::nullopt;
}

/// By the annotations of those who evict: the cluster autoscaler's says both, those of Karpenter
/// and of the descheduler keep a pod where it is, Karpenter's for a time, too.
std::optional<bool> may_evict_by(const Words& annotations) {
  const auto said = [&annotations](const char* name) {
    const auto at = annotations.find(name);
    return at == annotations.end() ? std::string() : at->second;
  };
  const std::string by_autoscaler = said("cluster-autoscaler.kubernetes.io/safe-to-evict");
  const std::string by_karpenter = said("karpenter.sh/do-not-disrupt");
  const bool is_kept = by_autoscaler == "false" ||
                       (!by_karpenter.empty() && by_karpenter != "false") ||
                       annotations.contains("descheduler.alpha.kubernetes.io/prefer-no-eviction");
  if (is_kept) return false;
  if (by_autoscaler == "true") return true;
  return std::nullopt;
}

}  // namespace

std::int64_t amount_of(const Amounts& amounts, std::string_view name) {
  const auto at = amounts.find(std::string(name));
  return at == amounts.end() ? 0 : at->second;
}

void add_to(Amounts& sum, const Amounts& more) {
  for (const auto& [name, amount] : more) {
    std::int64_t& all = sum[name];
    if (__builtin_add_overflow(all, amount, &all)) all = INT64_MAX;
  }
}

Amounts held_by(const Json& spec, std::string& mistake) {
  Amounts beside;
  Amounts first;
  for (const Json& container : part(spec, "initContainers")) {
    const Amounts needs = requests_of(container, mistake);
    if (text(container, "restartPolicy") == "Always") {
      add_to(beside, needs);
      raise(first, beside);
      continue;
    }
    Amounts together = beside;
    add_to(together, needs);
    raise(first, together);
  }
  Amounts held = std::move(beside);
  for (const Json& container : part(spec, "containers"))
    add_to(held, requests_of(container, mistake));
  raise(held, first);
  for (const auto& [name, amount] : requests_of(spec, mistake)) held[name] = amount;
  add_to(held, amounts(spec, "overhead", mistake));
  std::erase_if(held, [](const auto& one) { return one.second == 0; });
  return held;
}

Node node_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  Node node;
  node.uid = text(metadata, "uid");
  node.name = text(metadata, "name");
  node.labels = words(metadata, "labels");
  node.is_cordoned = is_true(spec, "unschedulable");
  for (const Json& one : part(spec, "taints")) {
    node.taints.push_back({text(one, "key"), text(one, "value"), text(one, "effect")});
  }
  std::string unread;  // a resource that cannot be read is none
  node.allocatable = amounts(part(object, "status"), "allocatable", unread);
  node.inventory =
      read_inventory(text(part(metadata, "annotations"), std::string(kDevicesAnnotation).c_str()));
  return node;
}

Pod pod_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  const Words annotations = words(metadata, "annotations");
  const auto noted = [&annotations](std::string_view name) {
    const auto at = annotations.find(std::string(name));
    return at == annotations.end() ? std::string() : at->second;
  };
  Pod pod;
  pod.uid = text(metadata, "uid");
  pod.name_space = text(metadata, "namespace");
  pod.name = text(metadata, "name");
  pod.labels = words(metadata, "labels");
  pod.version = text(metadata, "resourceVersion");
  for (const Json& owner : part(metadata, "ownerReferences")) {
    if (!is_true(owner, "controller")) continue;
    pod.owner = text(owner, "kind") + " " + text(owner, "name");
    if (text(owner, "kind") == "Job") pod.job = text(owner, "uid");
  }
  pod.may_evict = may_evict_by(annotations);
  pod.scheduler = text(spec, "schedulerName");
  pod.node = text(spec, "nodeName");
  pod.gpu = noted(kGpuAnnotation);
  pod.allocation = noted(kAllocationAnnotation);
  pod.priority = number(spec, "priority");
  pod.is_sparing = text(spec, "preemptionPolicy") == "Never";
  pod.grace = std::chrono::seconds(number(spec, "terminationGracePeriodSeconds", 30));
  pod.is_gated = !part(spec, "schedulingGates").empty();
  pod.is_deleted = metadata.is_object() && metadata.contains("deletionTimestamp");
  if (const auto at = parse_rfc3339(text(metadata, "creationTimestamp"))) pod.created = *at;
  pod.requests = held_by(spec, pod.mistake);
  pod.wishes = wishes_of(spec);
  pod.rules = neighbour_rules_of(spec, pod.name_space, pod.labels);
  pod.ports = ports_of(spec);
  pod.claims = claims_of(spec, pod.name);
  pod.has_local_data = has_local_data(spec);
  pod.gang = gang_of(object, pod.gang_mistake);
  pod.near = near_wish_of(metadata);
  if (!pod.gang && pod.near.is_own && pod.gang_mistake.empty()) {
    pod.gang_mistake = fmt::format(
        "{} says how near each other pods of a gang are, and {} is missing, which says who",
        pod.near.required.empty() ? kPreferredAnnotation : kRequiredAnnotation,
        kGangAnnotation);
  }
  pod.unjudged = unjudged_of(spec, pod.gang.has_value());
  const Json& status = part(object, "status");
  pod.devices = devices_of_pod(spec, status);
  pod.told = told_in(status);
  pod.started = started_in(status);
  return pod;
}

NameSpace name_space_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  return {text(metadata, "uid"), text(metadata, "name"), words(metadata, "labels")};
}

}  // namespace gflow::kube
