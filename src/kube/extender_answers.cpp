// SPDX-License-Identifier: Apache-2.0
#include "kube/extender_answers.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

/// ExtenderArgs.
struct Args {
  Pod pod;
  std::vector<std::string> nodes;
  Json items;  ///< of "Nodes", in the same order; null where names were sent
};

Result<Args> args_of(const std::string& asked) {
  Json document = Json::parse(asked, nullptr, false);
  const Json& pod = part(document, "Pod");
  if (!pod.is_object()) return fail(Code::Usage, "these are no ExtenderArgs: they name no Pod");
  Args args{.pod = pod_of(pod), .nodes = {}, .items = {}};
  if (args.pod.uid.empty()) return fail(Code::Usage, "the Pod of these ExtenderArgs has no uid");
  const Json& names = part(document, "NodeNames");
  const Json& items = part(part(document, "Nodes"), "items");
  if (!names.is_array() && !items.is_array()) {
    return fail(Code::Usage, "these are no ExtenderArgs: they have neither NodeNames nor Nodes");
  }
  if (names.is_array()) {
    for (const Json& name : names) {
      if (!name.is_string()) return fail(Code::Usage, "one of the NodeNames is no text");
      args.nodes.push_back(name.get<std::string>());
    }
    return args;
  }
  for (const Json& item : items) args.nodes.push_back(text(part(item, "metadata"), "name"));
  args.items = items;
  return args;
}

std::string written(const Json& document) {
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::string> filter(Extender& extender, const std::string& asked, MonoTime now) {
  const Args args = GF_TRY(args_of(asked));
  extender.meet(args.pod, now);
  const auto refusals = extender.refusals(args.pod, args.nodes, now);
  Json names = Json::array();
  Json items = Json::array();
  for (std::size_t i = 0; i < args.nodes.size(); ++i) {
    if (refusals.contains(args.nodes[i])) continue;
    names.push_back(args.nodes[i]);
    if (args.items.is_array()) items.push_back(args.items[i]);
  }
  Json failed = Json::object();
  Json never = Json::object();  // by evicting others there
  for (const auto& [node, refusal] : refusals) {
    (refusal.may_evict ? failed : never)[node] = refusal.why;
  }
  Json result = {{"FailedNodes", std::move(failed)},
                 {"FailedAndUnresolvableNodes", std::move(never)},
                 {"Error", ""}};
  if (args.items.is_array()) {
    result["Nodes"] = {{"metadata", Json::object()}, {"items", std::move(items)}};
  } else {
    result["NodeNames"] = std::move(names);
  }
  return written(result);
}

Result<std::string> prioritize(Extender& extender, const std::string& asked) {
  const Args args = GF_TRY(args_of(asked));
  const std::vector<int> scores = extender.scores(args.pod, args.nodes);
  Json list = Json::array();
  for (std::size_t i = 0; i < args.nodes.size(); ++i) {
    list.push_back({{"Host", args.nodes[i]}, {"Score", scores[i]}});
  }
  return written(list);
}

Result<BindingArgs> binding_args_of(const std::string& asked) {
  const Json document = Json::parse(asked, nullptr, false);
  BindingArgs wish{.uid = text(document, "PodUID"),
                   .name_space = text(document, "PodNamespace"),
                   .name = text(document, "PodName"),
                   .node = text(document, "Node")};
  if (wish.uid.empty() || wish.name_space.empty() || wish.name.empty() || wish.node.empty()) {
    return fail(Code::Usage,
                "these are no ExtenderBindingArgs: PodName, PodNamespace, PodUID and Node are "
                "texts that are not empty");
  }
  return wish;
}

std::string binding_result(const std::string& why_not) { return written({{"Error", why_not}}); }

}  // namespace gflow::kube
