// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/kubelet.h"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "base/text.h"
#include "device_plugin.grpc.pb.h"
#include "kube/fields.h"
#include "os/file.h"
#include "pod_resources.grpc.pb.h"

namespace gflow::deviceplugin {
namespace {

constexpr std::chrono::seconds kPatience{5};

std::shared_ptr<grpc::Channel> channel_to(const std::string& socket) {
  grpc::ChannelArguments arguments;
  // What stands there otherwise is the path, which a server of Go refuses as the name of a host.
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  // A channel of its own, closed with it: a kubelet that was restarted is not taken for the old.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      "unix://" + socket, grpc::InsecureChannelCredentials(), arguments);
}

void limit(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
}

Error error_of(const grpc::Status& status, std::string_view doing) {
  Code code = Code::Failure;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) code = Code::Unreachable;
  if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) code = Code::Timeout;
  return {code, fmt::format("{}: {}", doing, printable(status.error_message()))};
}

}  // namespace

std::string key_of(std::string_view resource, const Tickets& tickets) {
  std::string text(resource);
  for (const std::string& one : tickets) text += "\n" + one;
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  (void)::SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  std::string key;
  constexpr std::size_t kBytes = 16;
  for (const unsigned char byte : std::span(digest).first<kBytes>()) {
    key += fmt::format("{:02x}", byte);
  }
  return key;
}

Result<void> register_resource(const std::string& plugins,
                               const std::string& socket_name,
                               const std::string& resource) {
  const auto stub = v1beta1::Registration::NewStub(channel_to(plugins + "/kubelet.sock"));
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint(socket_name);
  request.set_resource_name(resource);
  request.mutable_options()->set_pre_start_required(true);
  grpc::ClientContext context;
  limit(context);
  v1beta1::Empty answer;
  const grpc::Status status = stub->Register(&context, request, &answer);
  if (status.ok()) return {};
  return std::unexpected(
      error_of(status, fmt::format("offer {} to the kubelet at {}", resource, plugins)));
}

Result<Holders> holders(const std::string& socket) {
  const auto stub = v1::PodResourcesLister::NewStub(channel_to(socket));
  grpc::ClientContext context;
  limit(context);
  v1::ListPodResourcesResponse answer;
  const grpc::Status status = stub->List(&context, {}, &answer);
  if (!status.ok()) {
    return std::unexpected(
        error_of(status, fmt::format("ask the kubelet at {} which pods have what", socket)));
  }
  Holders found;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      // One entry for each resource, or for each NUMA node of it.
      std::map<std::string, Tickets> tickets;
      for (const v1::ContainerDevices& devices : container.devices()) {
        tickets[devices.resource_name()].insert(devices.device_ids().begin(),
                                                devices.device_ids().end());
      }
      for (auto& [resource, these] : tickets) {
        found[{resource, std::move(these)}] = {pod.namespace_(), pod.name(), container.name()};
      }
    }
  }
  return found;
}

std::optional<std::string> uid_of_holder(const std::string& plugins,
                                         std::string_view resource,
                                         const Tickets& tickets) {
  const auto kept = os::read_file(plugins + "/kubelet_internal_checkpoint");
  if (!kept) return std::nullopt;
  const auto document = nlohmann::json::parse(*kept, nullptr, false);
  for (const auto& entry : kube::part(kube::part(document, "Data"), "PodDeviceEntries")) {
    if (kube::text(entry, "ResourceName") != resource) continue;
    Tickets these;
    for (const auto& of_numa_node : kube::part(entry, "DeviceIDs")) {
      for (const auto& id : of_numa_node) {
        if (id.is_string()) these.insert(id.get<std::string>());
      }
    }
    if (std::ranges::includes(these, tickets)) return kube::text(entry, "PodUID");
  }
  return std::nullopt;
}

}  // namespace gflow::deviceplugin
