// SPDX-License-Identifier: Apache-2.0
#include "dra/pod_claims.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "kube/fields.h"

namespace gflow::dra {
namespace {

using Json = nlohmann::json;
using kube::part;
using kube::text;

/// The claim that the pod has under a name of its own; "" if there is none (yet).
std::string claim_of(const Json& pod, const std::string& name) {
  for (const Json& one : part(part(pod, "spec"), "resourceClaims")) {
    if (text(one, "name") != name) continue;
    if (auto named = text(one, "resourceClaimName"); !named.empty()) return named;
  }
  for (const Json& one : part(part(pod, "status"), "resourceClaimStatuses")) {
    if (text(one, "name") == name) return text(one, "resourceClaimName");
  }
  return "";
}

/// "half of claim train-gpu" for each part that a container would have.
Result<std::set<std::string>> parts_of_container(const Json& pod,
                                                 const Json& container,
                                                 const PartsOf& parts_of) {
  std::set<std::string> parts;
  for (const Json& named : part(part(container, "resources"), "claims")) {
    const std::string claim = claim_of(pod, text(named, "name"));
    if (claim.empty()) continue;
    const std::string only = text(named, "request");
    for (const std::string& request : GF_TRY(parts_of(claim))) {
      if (!only.empty() && request != only) continue;
      parts.insert(fmt::format("'{}' of claim {}", request, claim));
    }
  }
  return parts;
}

}  // namespace

Result<void> check_one_part_each(const Json& pod, const PartsOf& parts_of) {
  const Json& spec = part(pod, "spec");
  for (const char* const kind : {"initContainers", "containers"}) {
    for (const Json& container : part(spec, kind)) {
      const auto parts = GF_TRY(parts_of_container(pod, container, parts_of));
      if (parts.size() <= 1) continue;
      return fail(Code::WrongState,
                  fmt::format("container {} would have parts of GPUs by several requests ({}), and "
                              "is held to those of one: ask for all by one request with a count, "
                              "or give them to several containers",
                              printable(text(container, "name")),
                              join(std::vector(parts.begin(), parts.end()), ", ")));
    }
  }
  return {};
}

}  // namespace gflow::dra
