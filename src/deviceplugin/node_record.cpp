// SPDX-License-Identifier: Apache-2.0
#include "deviceplugin/node_record.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "kube/api.h"
#include "kube/inventory.h"

namespace gflow::deviceplugin {
namespace {

constexpr std::string_view kRights = "; apply packaging/kubernetes/device-plugin.yaml";
/// A kubelet waits half a minute for all that is done before a container starts.
constexpr std::chrono::seconds kAtMost{8};
/// The kubelet is not looked after meanwhile.
constexpr std::chrono::seconds kToPublish{2};

}  // namespace

Result<void> NodeRecord::publish(const std::string& node, const std::string& devices) {
  const nlohmann::json patch = {
      {"metadata", {{"annotations", {{std::string(kube::kDevicesAnnotation), devices}}}}}};
  kube::Api api(access_, credentials_);
  const auto answer = GF_TRY(api.ask({.method = "PATCH",
                                      .path = "/api/v1/nodes/" + node,
                                      .body = patch.dump(),
                                      .content_type = "application/merge-patch+json",
                                      .limit = kToPublish}));
  if (answer.is_ok()) return {};
  return std::unexpected(kube::error_of(answer, "annotate the node " + node, kRights));
}

Result<std::string> NodeRecord::pod(const std::string& name_space, const std::string& name) {
  kube::Api api(access_, credentials_);
  auto answer = GF_TRY(api.ask(
      {.path = fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name), .limit = kAtMost}));
  if (answer.is_ok()) return std::move(answer.body);
  return std::unexpected(
      kube::error_of(answer, fmt::format("read the pod {}/{}", name_space, name), kRights));
}

}  // namespace gflow::deviceplugin
