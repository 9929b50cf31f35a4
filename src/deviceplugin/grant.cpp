// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/grant.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "kube/fields.h"
#include "kube/objects.h"
#include "kube/quantity.h"
#include "kube/want.h"

namespace gflow::deviceplugin {
namespace {

using Json = nlohmann::json;
using kube::Chosen;
using kube::ListedDevice;

constexpr const char* kGone = "it is not in the machine any more";

/// "" of a vendor of whom the cluster knows none.
std::string resource_of(std::string_view vendor) {
  const auto& known = kube::kGpuResources;
  const auto at = std::ranges::find(known, vendor, &kube::GpuResource::vendor);
  return std::string(at == known.end() ? std::string_view() : at->name);
}

int next_index(const std::vector<ListedDevice>& devices, const std::string& resource) {
  int next = 0;
  for (const ListedDevice& one : devices) {
    if (one.resource == resource) next = std::max(next, one.index + 1);
  }
  return next;
}

/// How many of a resource a container asks for.
std::size_t limit_of(const Json& container, std::string_view resource) {
  const Json& limits = kube::part(kube::part(container, "resources"), "limits");
  const auto limit = kube::read_whole(kube::text(limits, std::string(resource).c_str()));
  return static_cast<std::size_t>(std::max<std::int64_t>(limit.value_or(0), 0));
}

/// Those that run at the same time, in the order in which a pod starts them.
std::vector<const Json*> running_together(const Json& pod) {
  std::vector<const Json*> containers;
  const Json& spec = kube::part(pod, "spec");
  for (const Json& one : kube::part(spec, "initContainers")) {
    if (kube::text(one, "restartPolicy") == "Always") containers.push_back(&one);
  }
  for (const Json& one : kube::part(spec, "containers")) containers.push_back(&one);
  return containers;
}

std::unexpected<Error> refuse(std::string why) { return fail(Code::WrongState, std::move(why)); }

/// Those of the pod that the container has.
Result<std::vector<Chosen>> part_of(const Json& pod,
                                    const std::string& container,
                                    std::string_view resource,
                                    const std::vector<Chosen>& chosen) {
  std::vector<Chosen> these = chosen;
  if (resource != kAllocationResource) {
    std::erase_if(these, [&](const Chosen& one) { return one.resource != resource; });
  }
  std::size_t before = 0;
  for (const Json* one : running_together(pod)) {
    const std::size_t limit = limit_of(*one, resource);
    if (kube::text(*one, "name") != container) {
      before += limit;
      continue;
    }
    if (resource == kAllocationResource) return these;
    if (before + limit > these.size()) {
      return refuse(fmt::format("it asks for {} {}, and gflow-kube gave its pod {}",
                                before + limit,
                                resource,
                                these.size()));
    }
    const auto from = these.begin() + static_cast<std::ptrdiff_t>(before);
    return std::vector(from, from + static_cast<std::ptrdiff_t>(limit));
  }
  return refuse("the pod has no container of that name that goes on running");
}

bool is_shared(const std::vector<Chosen>& devices) {
  return std::ranges::any_of(devices, [](const Chosen& one) { return one.share < Share::whole(); });
}

/// A part of a GPU is held to for all processes of one container.
Result<void> check_alone(const Json& pod, const std::vector<Chosen>& devices) {
  if (!is_shared(devices)) return {};
  const auto containers = running_together(pod);
  const auto asks = [](const Json* one) { return limit_of(*one, kAllocationResource) > 0; };
  if (std::ranges::count_if(containers, asks) <= 1) return {};
  return refuse(fmt::format("a part of a GPU is one container's, and several of the pod ask for {}",
                            kAllocationResource));
}

/// Who changed gflow/gpu after the decision is not given what that says now.
Result<void> check_asked_for(const Request& request, const std::vector<Chosen>& devices) {
  const auto is_asked_for = [&](const Chosen& one) {
    return one.share == request.share && one.memory >= Memory{} &&
           (one.share < Share::whole()) == (request.mode == GpuMode::Fraction);
  };
  if (std::ranges::all_of(devices, is_asked_for)) return {};
  return refuse("gflow/allocation is not what gflow/gpu asks for: make the pod anew");
}

Result<DeviceGrant> device_of(const Chosen& chosen, const Request& request, const Known& known) {
  const auto& [node, machine, inventory] = known;
  const auto is_it = [&](const ListedDevice& one) {
    return one.resource == chosen.resource && one.index == chosen.index;
  };
  const auto listed = std::ranges::find_if(inventory, is_it);
  const auto there = listed == inventory.end()
                         ? machine.devices.end()
                         : std::ranges::find(machine.devices, listed->uuid, &Device::uuid);
  if (there == machine.devices.end()) {
    return refuse(
        fmt::format("its GPU {}/{} is not in this machine: delete the pod, and it gets "
                    "another one",
                    chosen.resource,
                    chosen.index));
  }
  if (!there->usable) {
    return refuse(fmt::format(
        "its GPU {}/{} cannot be used: {}", chosen.resource, chosen.index, there->trouble));
  }
  return DeviceGrant{.index = there->index,
                     .uuid = there->uuid,
                     .vendor = there->vendor,
                     .share = chosen.share,
                     .share_limit = request.share_limit,
                     .memory = chosen.memory};
}

}  // namespace

std::string text_of(const Grant& grant) {
  if (grant.devices.empty()) return "no GPU";
  std::vector<std::string> words;
  for (const DeviceGrant& one : grant.devices) {
    std::string word = one.uuid;
    if (one.share < Share::whole()) word += fmt::format(", {} of it", share_text(one.share));
    if (one.memory > Memory{}) word += fmt::format(", {}", memory_text(one.memory));
    words.push_back(std::move(word));
  }
  return join(words, "; ");
}

std::vector<ListedDevice> list_devices(const Machine& machine,
                                       const std::vector<ListedDevice>& before) {
  std::vector<ListedDevice> devices = before;
  for (ListedDevice& one : devices) one.trouble = kGone;
  for (const Device& device : machine.devices) {
    // MIG devices are left to NVIDIA's plugin, and so is the GPU, which is not in the machine.
    if (device.mig || device.uuid.empty() || resource_of(device.vendor).empty()) continue;
    ListedDevice now{.resource = resource_of(device.vendor),
                     .uuid = device.uuid,
                     .model = device.model,
                     .memory = device.memory_total.value_or(Memory{}),
                     .trouble = device.usable ? "" : device.trouble};
    if (!device.usable && now.trouble.empty()) now.trouble = "it cannot be used";
    const auto known = std::ranges::find(devices, device.uuid, &ListedDevice::uuid);
    now.index = known == devices.end() ? next_index(devices, now.resource) : known->index;
    if (known == devices.end()) {
      devices.push_back(std::move(now));
    } else {
      *known = std::move(now);
    }
  }
  return devices;
}

Result<Grant> grant_of(const Json& object,
                       const ContainerName& container,
                       std::string_view resource,
                       const Known& known) {
  const kube::Pod pod = kube::pod_of(object);
  if (pod.node != known.node) {
    return refuse(fmt::format("the pod of that name is on '{}' by now", pod.node));
  }
  const auto chosen = kube::read_chosen(pod.allocation);
  if (!chosen || chosen->node != pod.node) {
    return refuse(
        fmt::format("no GPU was chosen for it: pods that use GPUs of this node need "
                    "gflow-kube as their scheduler, or as an extender of it, and this one has '{}'",
                    pod.scheduler));
  }
  Grant grant{.owner = container.as_owner(pod.uid)};
  grant.request = GF_TRY(kube::request_of(pod));
  const auto devices = GF_TRY(part_of(object, container.container, resource, chosen->devices));
  GF_CHECK(check_alone(object, devices));
  GF_CHECK(check_asked_for(grant.request, devices));
  for (const Chosen& one : devices) {
    grant.devices.push_back(GF_TRY(device_of(one, grant.request, known)));
  }
  std::ranges::sort(grant.devices, {}, &DeviceGrant::index);
  return grant;
}

}  // namespace gflow::deviceplugin
