// SPDX-License-Identifier: Apache-2.0
#include "kube/storage.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "kube/fields.h"
#include "kube/quantity.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

/// As an annotation it is that of old objects.
std::string class_in(const Json& object) {
  const std::string old =
      noted(part(object, "metadata"), "volume.beta.kubernetes.io/storage-class");
  return old.empty() ? text(part(object, "spec"), "storageClassName") : old;
}

std::vector<std::string> modes_in(const Json& spec) {
  std::vector<std::string> modes;
  for (const Json& one : part(spec, "accessModes")) {
    if (one.is_string()) modes.push_back(one.get<std::string>());
  }
  std::ranges::sort(modes);
  return modes;
}

std::int64_t size_in(const Json& amounts) {
  return read_milli(text(amounts, "storage")).value_or(0);
}

bool is_block_in(const Json& spec) { return text(spec, "volumeMode") == "Block"; }

bool is_deleted_in(const Json& metadata) {
  return metadata.is_object() && metadata.contains("deletionTimestamp");
}

Term topology_of(const Json& written) {
  Term term;
  for (const Json& one : part(written, "matchLabelExpressions")) {
    term.push_back(match_of(one));
    term.back().op = "In";
  }
  return term;
}

}  // namespace

VolumeClaim volume_claim_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  VolumeClaim claim;
  claim.uid = text(metadata, "uid");
  claim.name_space = text(metadata, "namespace");
  claim.name = text(metadata, "name");
  for (const Json& owner : part(metadata, "ownerReferences")) {
    if (text(owner, "kind") == "Pod") claim.owner = text(owner, "uid");
  }
  claim.storage_class = class_in(object);
  claim.attributes_class = text(spec, "volumeAttributesClassName");
  claim.volume = text(spec, "volumeName");
  claim.is_bound =
      !claim.volume.empty() && !noted(metadata, "pv.kubernetes.io/bind-completed").empty();
  claim.is_lost = text(part(object, "status"), "phase") == "Lost";
  claim.is_deleted = is_deleted_in(metadata);
  claim.selected_node = noted(metadata, kSelectedNodeAnnotation);
  claim.modes = modes_in(spec);
  claim.is_block = is_block_in(spec);
  claim.size = size_in(part(part(spec, "resources"), "requests"));
  if (const Json& selector = part(spec, "selector"); selector.is_object()) {
    claim.selector = label_selector_of(selector);
  }
  return claim;
}

Volume volume_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  Volume volume;
  volume.uid = text(metadata, "uid");
  volume.name = text(metadata, "name");
  volume.version = text(metadata, "resourceVersion");
  volume.storage_class = class_in(object);
  volume.attributes_class = text(spec, "volumeAttributesClassName");
  for (const auto& [name, value] : part(metadata, "labels").items()) {
    if (value.is_string()) volume.labels[name] = value.get<std::string>();
  }
  volume.modes = modes_in(spec);
  volume.is_block = is_block_in(spec);
  volume.size = size_in(part(spec, "capacity"));
  volume.is_available = text(part(object, "status"), "phase") == "Available";
  volume.is_deleted = is_deleted_in(metadata);
  if (const Json& claim = part(spec, "claimRef"); claim.is_object()) {
    volume.claim = text(claim, "namespace") + "/" + text(claim, "name");
    volume.claim_uid = text(claim, "uid");
  }
  const Json& required = part(part(spec, "nodeAffinity"), "required");
  if (required.is_object()) {
    volume.affinity.emplace();
    for (const Json& one : part(required, "nodeSelectorTerms")) {
      volume.affinity->push_back(node_term_of(one));
    }
  }
  return volume;
}

StorageClass storage_class_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  StorageClass one;
  one.uid = text(metadata, "uid");
  one.name = text(metadata, "name");
  one.waits = text(object, "volumeBindingMode") == "WaitForFirstConsumer";
  const std::string provisioner = text(object, "provisioner");
  one.makes_volumes = !provisioner.empty() && provisioner != "kubernetes.io/no-provisioner";
  for (const Json& topology : part(object, "allowedTopologies")) {
    one.topologies.push_back(topology_of(topology));
  }
  return one;
}

}  // namespace gflow::kube
