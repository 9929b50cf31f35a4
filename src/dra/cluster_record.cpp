// SPDX-License-Identifier: Apache-2.0
#include "dra/cluster_record.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "kube/fields.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;
using kube::part;
using kube::text;

constexpr std::string_view kRights = "; apply packaging/kubernetes/dra-driver.yaml";
constexpr const char* kSlices = "/apis/resource.k8s.io/v1/resourceslices";
/// A kubelet waits for 45 s until all that a pod claims is there.
constexpr std::chrono::seconds kAtMost{8};

}  // namespace

Result<Json> ClusterRecord::ask(const kube::Request& request, const std::string& doing) {
  kube::Api api(access_, credentials_);
  const auto answer = GF_TRY(api.ask(request));
  if (!answer.is_ok()) return std::unexpected(kube::error_of(answer, doing, kRights));
  Json read = Json::parse(answer.body, nullptr, false);
  if (read.is_object()) return read;
  return fail(Code::Unreachable, fmt::format("{}: the answer is no JSON", doing));
}

Result<Json> ClusterRecord::claim(const std::string& name_space, const std::string& name) {
  return ask({.path = fmt::format(
                  "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}", name_space, name),
              .limit = kAtMost},
             fmt::format("read the claim {}/{}", name_space, name));
}

Result<Json> ClusterRecord::pod(const std::string& name_space, const std::string& name) {
  return ask(
      {.path = fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name), .limit = kAtMost},
      fmt::format("read the pod {}/{}", name_space, name));
}

Result<NodeName> ClusterRecord::node(const std::string& name) {
  const Json read = GF_TRY(ask({.path = "/api/v1/nodes/" + name, .limit = kAtMost},
                               fmt::format("read the node {}", name)));
  return NodeName{.name = name, .uid = text(part(read, "metadata"), "uid")};
}

Result<std::vector<Json>> ClusterRecord::slices(const std::string& node) {
  const Json read = GF_TRY(
      ask({.path = fmt::format(
               "{}?fieldSelector=spec.nodeName%3D{},spec.driver%3D{}", kSlices, node, kDriver),
           .limit = kAtMost},
          fmt::format("read the ResourceSlices of the node {} (resource.k8s.io/v1, of Kubernetes "
                      "1.34)",
                      node)));
  std::vector<Json> found;
  for (const Json& one : part(read, "items")) found.push_back(one);
  return found;
}

Result<Json> ClusterRecord::write_slice(Json slice, const Json& before) {
  const std::string name = text(part(slice, "metadata"), "name");
  const std::string doing = fmt::format("write the ResourceSlice {}", name);
  if (before.is_null()) {
    return ask({.method = "POST", .path = kSlices, .body = slice.dump(), .limit = kAtMost}, doing);
  }
  slice["metadata"]["resourceVersion"] = text(part(before, "metadata"), "resourceVersion");
  return ask({.method = "PUT",
              .path = fmt::format("{}/{}", kSlices, name),
              .body = slice.dump(),
              .limit = kAtMost},
             doing);
}

Result<void> ClusterRecord::remove_slice(const std::string& name) {
  GF_CHECK(ask({.method = "DELETE", .path = fmt::format("{}/{}", kSlices, name), .limit = kAtMost},
               fmt::format("delete the ResourceSlice {}", name)));
  return {};
}

}  // namespace gflow::dra
