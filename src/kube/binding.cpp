// SPDX-License-Identifier: Apache-2.0
#include "kube/binding.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "kube/fields.h"
#include "os/clock.h"

namespace gflow::kube {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::json;

/// What the API server took it may carry out for so long (its --request-timeout).
constexpr auto kMayCome = 60s;

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

}  // namespace

std::string pod_path(const std::string& name_space, const std::string& name) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", name_space, name);
}

std::string bound_text(const Bind& bind) {
  return fmt::format("bound {}/{} to {}{}{}",
                     bind.name_space,
                     bind.name,
                     bind.node,
                     bind.allocation.empty() ? "" : " ",
                     bind.allocation);
}

Result<Answer> ask_to_bind(Api& api, const Bind& bind, std::chrono::milliseconds limit) {
  return api.ask({.method = "POST",
                  .path = pod_path(bind.name_space, bind.name) + "/binding",
                  .body = binding_of(bind).dump(-1, ' ', false, Json::error_handler_t::replace),
                  .limit = limit});
}

Standing standing_of(Api& api, const Bind& bind) {
  const auto answer = api.ask({.path = pod_path(bind.name_space, bind.name), .limit = 5s});
  if (!answer) return Standing::Unknown;
  if (answer->status == 404) return Standing::Elsewhere;
  if (!answer->is_ok()) return Standing::Unknown;
  const Json pod = Json::parse(answer->body, nullptr, false);
  const Json& metadata = part(pod, "metadata");
  if (text(metadata, "uid") != bind.uid) return Standing::Elsewhere;
  const std::string node = text(part(pod, "spec"), "nodeName");
  if (node.empty()) return Standing::Waits;
  // One that was given nothing may have come with a text of whoever made it.
  const bool is_as_given =
      bind.allocation.empty() || noted(metadata, kAllocationAnnotation) == bind.allocation;
  return node == bind.node && is_as_given ? Standing::There : Standing::Runs;
}

Standing standing_after(Api& api,
                        const Bind& bind,
                        const Result<Answer>& answer,
                        BindTries& tries) {
  const MonoTime now = os::now().mono;
  const bool is_answered = answer && answer->status < 500 && !answer->is_repeated;
  if (!is_answered) tries.may_come = now + kMayCome;
  if (answer && answer->is_ok()) return Standing::There;
  const bool is_refused = answer && !answer->is_passing();
  const bool is_conflict = answer && answer->status == 409;
  if (is_refused && !is_conflict && !tries.may_come) return Standing::Elsewhere;
  const bool may_come = tries.may_come && now < *tries.may_come;
  const Standing standing = standing_of(api, bind);
  return is_refused && !may_come && standing == Standing::Waits ? Standing::Elsewhere : standing;
}

}  // namespace gflow::kube
