// SPDX-License-Identifier: Apache-2.0
#include "kube/binding.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

Json binding_of(const Bind& bind) {
  Json metadata = {{"name", bind.name}, {"namespace", bind.name_space}, {"uid", bind.uid}};
  if (!bind.allocation.empty()) {
    metadata["annotations"] = {{std::string(kAllocationAnnotation), bind.allocation}};
  }
  return {{"apiVersion", "v1"},
          {"kind", "Binding"},
          {"metadata", std::move(metadata)},
          {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", bind.node}}}};
}

Standing look(Api& api, const Bind& bind) {
  const auto answer = api.ask({.path = pod_path(bind.name_space, bind.name), .limit = 5s});
  if (!answer) return Standing::Unknown;
  if (answer->status == 404) return Standing::Elsewhere;
  if (!answer->is_ok()) return Standing::Unknown;
  const Json pod = Json::parse(answer->body, nullptr, false);
  const Json& metadata = part(pod, "metadata");
  if (text(metadata, "uid") != bind.uid) return Standing::Elsewhere;
  const std::string node = text(part(pod, "spec"), "nodeName");
  if (node.empty()) return Standing::Waits;
  const std::string given = noted(metadata, kAllocationAnnotation);
  return node == bind.node && given == bind.allocation ? Standing::There : Standing::Elsewhere;
}

}  // namespace

std::string pod_path(const std::string& name_space, const std::string& name) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name);
}

Result<Answer> ask_to_bind(Api& api, const Bind& bind, std::chrono::milliseconds limit) {
  return api.ask({.method = "POST",
                  .path = pod_path(bind.name_space, bind.name) + "/binding",
                  .body = binding_of(bind).dump(-1, ' ', false, Json::error_handler_t::replace),
                  .limit = limit});
}

Standing standing_after(Api& api, const Bind& bind, const Result<Answer>& answer) {
  if (answer && answer->is_ok()) return Standing::There;
  const bool is_conflict = answer && answer->status == 409;
  if (answer && !is_conflict && !answer->is_passing()) return Standing::Elsewhere;
  const Standing standing = look(api, bind);
  return is_conflict && standing == Standing::Waits ? Standing::Elsewhere : standing;
}

}  // namespace gflow::kube
