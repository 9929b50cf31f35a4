// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "core/launch.h"
#include "core/machine.h"
#include "kube/inventory.h"
#include "kube/want.h"

namespace gflow::deviceplugin {

using kube::kAllocationResource;

/// Whose devices are.
struct Owner {
  std::string name;  ///< of a pod or a claim: "default/train"
  std::string part;  ///< of it: a container, a request
  std::string uid;

  friend bool operator==(const Owner&, const Owner&) = default;
};

/// What a container is given.
struct Grant {
  Owner owner;
  Request request;                   ///< of the pod, or as good as what the claim asks for
  std::vector<DeviceGrant> devices;  ///< by the indices of the machine

  friend bool operator==(const Grant&, const Grant&) = default;
};

/// What it has, for a log: "GPU-5a, 0.5 of it, 8G".
[[nodiscard]] std::string text_of(const Grant& grant);

/// A container as its kubelet names it.
struct ContainerName {
  std::string name_space;
  std::string pod;
  std::string container;

  [[nodiscard]] std::string full_name() const { return name_space + "/" + pod; }
  [[nodiscard]] Owner as_owner(std::string uid) const {
    return {full_name(), container, std::move(uid)};
  }
  friend auto operator<=>(const ContainerName&, const ContainerName&) = default;
};

/// The devices of this machine that have a UUID and a known vendor, as the cluster knows them.
/// Those of `before` keep their indices, also where they are gone, until the machine starts anew;
/// those that came since have the next ones.
[[nodiscard]] std::vector<kube::ListedDevice> list_devices(
    const Machine& machine, const std::vector<kube::ListedDevice>& before);

/// The node as a plugin knows it.
struct Known {
  std::string node;  ///< as the cluster calls it
  Machine machine;
  std::vector<kube::ListedDevice> inventory;
};

/// What `pod`, as the API server has it, gives its container for this resource: for
/// kAllocationResource all that gflow-kube chose; for whole GPUs as many as its limit says, of
/// those that containers before it do not have. Errors, as the pod is to be told: it was not placed
/// by gflow-kube, or not here, or asks for something else now; a device that is not there; two
/// containers that share a part.
[[nodiscard]] Result<Grant> grant_of(const nlohmann::json& pod,
                                     const ContainerName& container,
                                     std::string_view resource,
                                     const Known& known);

}  // namespace gflow::deviceplugin
