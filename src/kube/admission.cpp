// SPDX-License-Identifier: Apache-2.0
#include "kube/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/base64.h"
#include "kube/fields.h"
#include "kube/objects.h"
#include "kube/want.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kVersion1 = "admission.k8s.io/v1";
/// What the API server has written where nobody chose.
constexpr std::string_view kDefaultScheduler = "default-scheduler";

bool names_gpus(const Json& container) {
  const Json& limits = part(part(container, "resources"), "limits");
  return limits.contains(kAllocationResource) ||
         std::ranges::any_of(kGpuResources, [&limits](const GpuResource& one) {
           return limits.contains(one.name);
         });
}

bool any_names_gpus(const Json& spec) {
  return std::ranges::any_of(part(spec, "containers"), names_gpus) ||
         std::ranges::any_of(part(spec, "initContainers"), names_gpus);
}

Json with_allocation(Json resources) {
  if (!resources.is_object()) resources = Json::object();
  for (const char* kind : {"limits", "requests"}) {
    if (!resources[kind].is_object()) resources[kind] = Json::object();
    resources[kind][std::string(kAllocationResource)] = "1";
  }
  return resources;
}

/// As RFC 6902 has it.
Json patch_of(const AdmissionRules& rules, const Json& pod) {
  Json patch = Json::array();
  const Json& spec = part(pod, "spec");
  std::string scheduler = text(spec, "schedulerName");
  const bool nobody_chose =
      (scheduler.empty() || scheduler == kDefaultScheduler) && text(spec, "nodeName").empty();
  if (nobody_chose && scheduler != rules.scheduler) {
    scheduler = rules.scheduler;
    patch.push_back({{"op", "add"}, {"path", "/spec/schedulerName"}, {"value", scheduler}});
  }
  const Json& containers = part(spec, "containers");
  const bool is_its = scheduler == rules.scheduler;
  if (!rules.allocations || !is_its || !containers.is_array() || containers.empty()) return patch;
  if (any_names_gpus(spec)) return patch;
  patch.push_back({{"op", "add"},
                   {"path", "/spec/containers/0/resources"},
                   {"value", with_allocation(part(containers[0], "resources"))}});
  return patch;
}

Json response_to(const AdmissionRules& rules, const Json& request) {
  Json response = {{"uid", text(request, "uid")}, {"allowed", true}};
  const Json& kind = part(request, "kind");
  const bool is_new_pod = text(request, "operation") == "CREATE" && text(kind, "kind") == "Pod" &&
                          text(kind, "group").empty() && text(request, "subResource").empty();
  const Json& pod = part(request, "object");
  const bool asks = part(part(pod, "metadata"), "annotations").contains(kGpuAnnotation);
  if (!is_new_pod || !asks) return response;
  const Json patch = patch_of(rules, pod);
  if (!patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = api::base64_encode(patch.dump());
  }
  if (const auto asked = request_of(pod_of(pod)); !asked) {
    response["warnings"] = Json::array({"gflow cannot schedule it: " + asked.error().message});
  }
  return response;
}

}  // namespace

Result<std::string> review(const AdmissionRules& rules, const std::string& asked) {
  const Json question = Json::parse(asked, nullptr, false);
  const Json& request = part(question, "request");
  if (text(question, "kind") != "AdmissionReview" || text(question, "apiVersion") != kVersion1 ||
      text(request, "uid").empty()) {
    return fail(
        Code::Usage,
        fmt::format("what is asked is an AdmissionReview of {}, with a request", kVersion1));
  }
  const Json answer = {{"apiVersion", kVersion1},
                       {"kind", "AdmissionReview"},
                       {"response", response_to(rules, request)}};
  return answer.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gflow::kube
