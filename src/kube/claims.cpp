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

/// Of the volume as it was decided on: a conflict if anybody else has it by now.
Request set_aside(const Bind& bind, const ClaimStep& step) {
  const Json document = {{"metadata",
                          {{"uid", step.volume_uid},
                           {"resourceVersion", step.volume_version},
                           {"annotations", {{"pv.kubernetes.io/bound-by-controller", "yes"}}}}},
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

Result<void> ask_for_claims(Api& api, const Bind& bind) {
  for (const ClaimStep& step : bind.claims) {
    const bool has_volume = !step.volume.empty();
    const Answer answer =
        GF_TRY(api.ask(has_volume ? set_aside(bind, step) : select_node(bind, step)));
    if (answer.is_ok()) continue;
    return std::unexpected(
        error_of(answer,
                 has_volume ? fmt::format("set aside persistentvolume {}", step.volume)
                            : fmt::format("have a volume made for claim {}", step.name)));
  }
  return {};
}

Result<bool> see_claims(Api& api, const Bind& bind) {
  for (const ClaimStep& step : bind.claims) {
    const auto answer = api.ask({.path = path_of(bind, step)});
    const bool is_silent = !answer || answer->status == 429 || answer->status >= 500;
    if (is_silent) return false;
    if (!answer->is_ok()) {
      return std::unexpected(error_of(*answer, fmt::format("read claim {}", step.name)));
    }
    const VolumeClaim claim = volume_claim_of(Json::parse(answer->body, nullptr, false));
    if (claim.uid != step.uid || claim.is_deleted) {
      return fail(Code::NotFound, fmt::format("claim {} is gone", step.name));
    }
    if (step.volume.empty() && claim.selected_node != bind.node) {
      return fail(Code::WrongState,
                  fmt::format("no volume was made for claim {} on {}", step.name, bind.node));
    }
    if (!claim.is_bound) return false;
    if (!step.volume.empty() && claim.volume != step.volume) {
      return fail(Code::WrongState,
                  fmt::format("claim {} has another volume: {}", step.name, claim.volume));
    }
  }
  return true;
}

}  // namespace gflow::kube
