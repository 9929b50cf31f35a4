// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/machine.h"
#include "deviceplugin/grant.h"

/// ResourceClaims (resource.k8s.io/v1), as far as devices of this driver were given to them.
namespace gflow::dra {

/// Where devices are.
struct Here {
  std::string node;  ///< as the cluster calls it, and the pool of its devices
  Machine machine;
};

/// A device of a claim, by the names that its kubelet knows it by.
struct ClaimedDevice {
  std::string device;
  std::string share_id;  ///< of several that have it; "" if one alone has

  friend bool operator==(const ClaimedDevice&, const ClaimedDevice&) = default;
};

/// What those containers have that name the claim, or this request of it.
struct RequestGrant {
  std::string request;
  std::string alternative;  ///< which of several it became, "gpu/small"; else the request
  std::vector<ClaimedDevice> devices;
  bool only_looks = false;  ///< an administrator's: it does not use them
  deviceplugin::Grant grant;

  [[nodiscard]] bool is_part() const;
};

/// All that was given of this node to a claim, as the API server has it. Errors, as its pod is to
/// be told: it has no devices yet, one of them is not there, or it configures something that this
/// driver does not know.
[[nodiscard]] Result<std::vector<RequestGrant>> grants_of(const nlohmann::json& claim,
                                                          const Here& here);
/// Whether a container may begin to use it. Errors: a device cannot be used, with the reason.
[[nodiscard]] Result<void> check_usable(const RequestGrant& grant, const Machine& machine);

/// Whether anything was given of the devices of this node.
[[nodiscard]] bool has_devices_of(const nlohmann::json& claim, const std::string& node);

/// The requests of a claim that are for a part of a device, whichever node that is of.
[[nodiscard]] std::set<std::string> requests_of_parts(const nlohmann::json& claim);

}  // namespace gflow::dra
