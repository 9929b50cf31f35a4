// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kube/labels.h"

/// PersistentVolumeClaims, PersistentVolumes and StorageClasses, with what a decision looks at and
/// nothing else.
namespace gflow::kube {

/// On a claim: the node for which its volume is to be made.
constexpr std::string_view kSelectedNodeAnnotation = "volume.kubernetes.io/selected-node";

struct VolumeClaim {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string owner;             ///< uid of the pod it was made for; "" if for none
  std::string storage_class;     ///< "" if it has none
  std::string attributes_class;  ///< "" if it has none
  std::string volume;            ///< that it is bound to, or is to be
  bool is_bound = false;         ///< whoever binds has done all of it
  bool is_lost = false;          ///< and its volume is gone
  bool is_deleted = false;       ///< being deleted
  std::string selected_node;
  std::vector<std::string> modes;  ///< of access, in order
  bool is_block = false;
  std::int64_t size = 0;  ///< that it asks for, in thousandths of a byte
  Selector selector;      ///< of volumes; none: any

  friend bool operator==(const VolumeClaim&, const VolumeClaim&) = default;
};

struct Volume {
  std::string uid;
  std::string name;
  std::string version;  ///< resourceVersion
  std::string storage_class;
  std::string attributes_class;
  Words labels;
  std::vector<std::string> modes;  ///< of access, in order
  bool is_block = false;
  std::int64_t size = 0;  ///< in thousandths of a byte
  bool is_available = false;
  bool is_deleted = false;                    ///< being deleted
  std::string claim;                          ///< "NAMESPACE/NAME" that it is bound to, or is to be
  std::string claim_uid;                      ///< "" if whoever says so does not know it
  std::optional<std::vector<Term>> affinity;  ///< one of them has to hold; none: it is everywhere

  friend bool operator==(const Volume&, const Volume&) = default;
};

struct StorageClass {
  std::string uid;
  std::string name;
  bool waits = false;  ///< for a pod to have its node, before it binds
  bool makes_volumes = false;
  std::vector<Term> topologies;  ///< one of them has to hold; none: it makes them everywhere

  friend bool operator==(const StorageClass&, const StorageClass&) = default;
};

[[nodiscard]] VolumeClaim volume_claim_of(const nlohmann::json& object);
[[nodiscard]] Volume volume_of(const nlohmann::json& object);
[[nodiscard]] StorageClass storage_class_of(const nlohmann::json& object);

}  // namespace gflow::kube
