// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "core/launch.h"
#include "core/machine.h"
#include "kube/inventory.h"
#include "kube/want.h"

namespace gflow::deviceplugin {

using kube::kAllocationResource;

/// What a container of a pod is given.
struct Grant {
  std::string pod;  ///< "default/train"
  std::string uid;
  std::string container;
  Request request;                   ///< of the pod
  std::vector<DeviceGrant> devices;  ///< by the indices of the machine

  friend bool operator==(const Grant&, const Grant&) = default;
};

/// A container as its kubelet names it.
struct ContainerName {
  std::string name_space;
  std::string pod;
  std::string container;

  [[nodiscard]] std::string full_name() const { return name_space + "/" + pod; }
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
