// SPDX-License-Identifier: Apache-2.0
#include "kube/claims.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "kube/storage.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

std::string path_of(const Bind& bind, const ClaimStep& step) {
  return fmt::format("/api/v1/namespaces/{}/persistentvolumeclaims/{}", bind.name_space, step.name);
}

Request patch(std::string path, const Json& document) {
  return {.method = "PATCH",
          .path = std::move(path),
          .body = document.dump(),
          .content_type = "application/merge-patch+json"};
}

/// Of the volume as it was decided on: a conflict if anybody else has it by now. One that was set
/// aside by whoever made it is not given up with the claim.
Request set_aside(const Bind& bind, const ClaimStep& step) {
  Json metadata = {{"uid", step.volume_uid}, {"resourceVersion", step.volume_version}};
  if (!step.is_aside) metadata["annotations"] = {{"pv.kubernetes.io/bound-by-controller", "yes"}};
  const Json document = {{"metadata", std::move(metadata)},
                         {"spec",
                          {{"claimRef",
                            {{"apiVersion", "v1"},
                             {"kind", "PersistentVolumeClaim"},
                             {"namespace", bind.name_space},
                             {"name", step.name},
                             {"uid", step.uid}}}}}};
  return patch("/api/v1/persistentvolumes/" + step.volume, document);
}

Request select_node(const Bind& bind, const ClaimStep& step) {
  const Json document = {
      {"metadata",
       {{"uid", step.uid}, {"annotations", {{std::string(kSelectedNodeAnnotation), bind.node}}}}}};
  return patch(path_of(bind, step), document);
}

}  // namespace

Result<void> ask_for_claim(Api& api, const Bind& bind, const ClaimStep& step) {
  const bool has_volume = !step.volume.empty();
  const Answer answer =
      GF_TRY(api.ask(has_volume ? set_aside(bind, step) : select_node(bind, step)));
  if (answer.is_ok()) return {};
  return std::unexpected(error_of(answer,
                                  has_volume
                                      ? fmt::format("set aside persistentvolume {}", step.volume)
                                      : fmt::format("have a volume made for claim {}", step.name)));
}

}  // namespace gflow::kube
