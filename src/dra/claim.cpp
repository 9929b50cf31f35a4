// SPDX-License-Identifier: Apache-2.0
#include "dra/claim.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "dra/slices.h"
#include "kube/fields.h"
#include "kube/quantity.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;
using kube::part;
using kube::text;

std::unexpected<Error> refuse(std::string why) { return fail(Code::WrongState, std::move(why)); }

/// Of "main/small", the second of several that "main" may be, it is "main" that containers name.
std::string base_request(const std::string& request) {
  return request.substr(0, request.find('/'));
}

const Json& allocation_of(const Json& claim) {
  return part(part(part(claim, "status"), "allocation"), "devices");
}

bool is_ours(const Json& result) { return text(result, "driver") == kDriver; }

bool is_admins(const Json& result) { return part(result, "adminAccess") == true; }

/// Of its time; the whole of one that is not given out in parts, none of one that is looked at
/// only.
Result<Share> share_of(const Json& result) {
  if (is_admins(result)) return Share{};
  const std::string told = text(part(result, "consumedCapacity"), kShare);
  if (told.empty()) return Share::whole();
  const std::int64_t parts = GF_TRY(kube::read_ten_thousandths(told));
  return Share{static_cast<int>(std::min<std::int64_t>(parts, Share::whole().parts))};
}

bool is_less_than_whole(Share share) { return share > Share{} && share < Share::whole(); }

Result<Memory> memory_of(const Json& result) {
  const std::string told = text(part(result, "consumedCapacity"), kMemory);
  return told.empty() ? Memory{} : Memory{GF_TRY(kube::read_whole(told))};
}

/// It is for all, for a request, or for one of the alternatives of that.
bool is_for(const Json& config, const RequestGrant& grant) {
  const Json& requests = part(config, "requests");
  if (!requests.is_array() || requests.empty()) return true;
  return std::ranges::any_of(requests, [&grant](const Json& one) {
    return one == grant.request || one == grant.alternative;
  });
}

/// The only thing that is configured is up to which share one may go.
Result<Share> limit_of(const Json& parameters) {
  if (text(parameters, "apiVersion") != fmt::format("{}/v1", kDriver) ||
      text(parameters, "kind") != "Part") {
    return refuse(fmt::format("its configuration is '{}' of '{}', and {} knows Part of {}/v1",
                              printable(text(parameters, "kind")),
                              printable(text(parameters, "apiVersion")),
                              kDriver,
                              kDriver));
  }
  std::optional<std::int64_t> limit;
  for (const auto& [key, value] : parameters.items()) {
    if (key == "apiVersion" || key == "kind") continue;
    if (key != "shareLimit" || !value.is_string()) {
      return refuse(fmt::format("'{}' of its configuration is not known: write shareLimit: \"1\"",
                                printable(key)));
    }
    limit = GF_TRY(kube::read_ten_thousandths(value.get<std::string>()));
  }
  if (limit && (*limit <= 0 || *limit > Share::whole().parts)) {
    return refuse("shareLimit of its configuration is to be more than 0 and at most 1");
  }
  return Share{static_cast<int>(limit.value_or(0))};
}

/// 0: it is held to its share. What the claim says is after what its class says, and wins.
Result<Share> share_limit(const Json& claim, const RequestGrant& grant) {
  Share limit{};
  for (const Json& config : part(allocation_of(claim), "config")) {
    const Json& opaque = part(config, "opaque");
    if (text(opaque, "driver") != kDriver || !is_for(config, grant)) continue;
    limit = GF_TRY(limit_of(part(opaque, "parameters")));
  }
  const Share share = grant.grant.devices.front().share;
  if (limit == Share{} || limit >= share || !is_less_than_whole(share)) return limit;
  return refuse(fmt::format("shareLimit {} of its configuration is less than its share {}",
                            share_text(limit),
                            share_text(share)));
}

const Device* find_named(const Machine& machine, const std::string& name) {
  const auto at = std::ranges::find(machine.devices, name, device_name);
  return at == machine.devices.end() ? nullptr : &*at;
}

Result<DeviceGrant> device_of(const Json& result, const Machine& machine) {
  const std::string name = text(result, "device");
  const Device* const there = find_named(machine, name);
  if (there == nullptr) {
    return refuse(fmt::format("its GPU {} is not in this machine", printable(name)));
  }
  DeviceGrant grant{.index = there->index,
                    .uuid = there->uuid,
                    .vendor = there->vendor,
                    .share = GF_TRY(share_of(result)),
                    .memory = GF_TRY(memory_of(result))};
  const bool is_held_to = grant.vendor == "nvidia" && grant.memory > Memory{};
  if (is_held_to || !is_less_than_whole(grant.share)) return grant;
  return refuse(
      fmt::format("of its GPU {} it is given {}, to which no container is held: it is allocated by "
                  "what is not told of this GPU any more",
                  name,
                  share_text(grant.share)));
}

/// What a person would have asked for to have that. All of one request are alike.
Request request_of(const std::vector<DeviceGrant>& devices, Share limit) {
  const DeviceGrant& first = devices.front();
  Request request{.gpus = static_cast<int>(devices.size())};
  if (!is_less_than_whole(first.share)) return request;
  request.share = first.share;
  request.mode = GpuMode::Fraction;
  if (limit > first.share) request.share_limit = limit;
  const auto has_as_much = [&first](const DeviceGrant& one) { return one.memory == first.memory; };
  if (std::ranges::all_of(devices, has_as_much)) request.gpu_memory = first.memory;
  return request;
}

Result<void> add(const Json& result, const Machine& machine, std::vector<RequestGrant>& grants) {
  const std::string request = base_request(text(result, "request"));
  auto at = std::ranges::find(grants, request, &RequestGrant::request);
  if (at == grants.end()) {
    grants.push_back({request, text(result, "request"), {}, is_admins(result), {}});
    at = std::prev(grants.end());
  }
  at->devices.push_back({text(result, "device"), text(result, "shareID")});
  at->grant.devices.push_back(GF_TRY(device_of(result, machine)));
  return {};
}

}  // namespace

bool RequestGrant::is_part() const { return grant.request.mode == GpuMode::Fraction; }

Result<std::vector<RequestGrant>> grants_of(const Json& claim, const Here& here) {
  const Json& metadata = part(claim, "metadata");
  std::vector<RequestGrant> grants;
  for (const Json& result : part(allocation_of(claim), "results")) {
    if (is_ours(result) && text(result, "pool") == here.node) {
      GF_CHECK(add(result, here.machine, grants));
    }
  }
  if (grants.empty()) {
    return refuse(fmt::format("no GPU of the node {} is allocated to it", here.node));
  }
  for (RequestGrant& one : grants) {
    const Share limit = GF_TRY(share_limit(claim, one));
    one.grant.request = request_of(one.grant.devices, limit);
    one.grant.owner = {fmt::format("{}/{}", text(metadata, "namespace"), text(metadata, "name")),
                       one.request,
                       text(metadata, "uid")};
    for (DeviceGrant& device : one.grant.devices)
      device.share_limit = one.grant.request.share_limit;
  }
  return grants;
}

Result<void> check_usable(const RequestGrant& grant, const Machine& machine) {
  if (grant.only_looks) return {};
  for (const ClaimedDevice& one : grant.devices) {
    const Device* const there = find_named(machine, one.device);
    if (there != nullptr && there->usable) continue;
    return refuse(fmt::format("its GPU {} cannot be used: {}",
                              one.device,
                              there == nullptr ? "it is gone" : there->trouble));
  }
  return {};
}

bool has_devices_of(const Json& claim, const std::string& node) {
  return std::ranges::any_of(part(allocation_of(claim), "results"), [&node](const Json& result) {
    return is_ours(result) && text(result, "pool") == node;
  });
}

std::set<std::string> requests_of_parts(const Json& claim) {
  std::set<std::string> requests;
  for (const Json& result : part(allocation_of(claim), "results")) {
    if (!is_ours(result)) continue;
    const auto share = share_of(result);
    if (share && is_less_than_whole(*share)) requests.insert(base_request(text(result, "request")));
  }
  return requests;
}

}  // namespace gflow::dra
