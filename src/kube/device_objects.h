// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "claims/allocator.h"
#include "kube/labels.h"

/// ResourceSlices, DeviceClasses and ResourceClaims of resource.k8s.io/v1, with what a decision
/// looks at and nothing else.
namespace gflow::kube {

/// Consumers that a claim may have at once, of the API.
constexpr std::size_t kMostConsumers = 256;

/// What is written of an allocation: that of the claims module, and its text for status.allocation.
struct DeviceAllocation {
  std::vector<claims::GivenDevice> devices{};
  std::optional<std::vector<Term>> where{};  ///< one of them has to hold; none: everywhere
  std::string text{};                        ///< as JSON
};

struct ResourceClaim {
  std::string uid;
  std::string name_space;
  std::string name;
  std::string owner;        ///< uid of the pod it was made for; "" if for none
  bool is_deleted = false;  ///< being deleted
  std::string spec_text;    ///< spec.devices: claims that say the same are alike
  claims::ClaimSpec spec{};
  std::optional<DeviceAllocation> allocation{};  ///< that it has; its text is left out
  std::set<std::string> consumers{};             ///< uids of whom it is reserved for

  [[nodiscard]] std::string full_name() const { return name_space + "/" + name; }
};

[[nodiscard]] claims::Slice slice_of(const nlohmann::json& object);
[[nodiscard]] claims::DeviceClass device_class_of(const nlohmann::json& object);
[[nodiscard]] ResourceClaim resource_claim_of(const nlohmann::json& object);
/// The devices of a status.allocation, in its order.
[[nodiscard]] std::vector<claims::GivenDevice> devices_in(const nlohmann::json& allocation);
/// The terms of a NodeSelector.
[[nodiscard]] std::vector<Term> node_terms_of(const nlohmann::json& selector);
/// What is given of devices on this node, as the claim is to say it. Shares have no id yet
/// ("shareID": null): who writes them makes one. Nothing: nodes of a device are selected in a way
/// that no claim can say.
[[nodiscard]] std::optional<DeviceAllocation> allocation_of(const claims::Given& given,
                                                            const std::string& node);

}  // namespace gflow::kube
