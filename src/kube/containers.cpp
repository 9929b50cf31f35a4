// SPDX-License-Identifier: Apache-2.0
#include "kube/containers.h"

#include <nlohmann/json.hpp>

#include "kube/fields.h"

namespace gflow::kube {

std::string main_container_of(const nlohmann::json& pod) {
  std::string first;
  for (const nlohmann::json& one : part(part(pod, "spec"), "containers")) {
    const std::string name = text(one, "name");
    if (name == kMainContainer) return name;
    if (first.empty()) first = name;
  }
  const std::string noted =
      text(part(part(pod, "metadata"), "annotations"), "kubectl.kubernetes.io/default-container");
  return noted.empty() ? first : noted;
}

const nlohmann::json& state_of_main(const nlohmann::json& pod) {
  static const nlohmann::json none;
  const std::string name = main_container_of(pod);
  for (const nlohmann::json& one : part(part(pod, "status"), "containerStatuses")) {
    if (text(one, "name") == name) return part(one, "state");
  }
  return none;
}

}  // namespace gflow::kube
