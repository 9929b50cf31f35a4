// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "kube/objects.h"
#include "kube/predicates.h"
#include "kube/quantity.h"
#include "kube/want.h"

/// What a cluster may hold: an annotation, a quantity, a document that is taken for a pod and for a
/// node.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto milli = gflow::kube::read_milli(text);
  const auto whole = gflow::kube::read_whole(text);
  if (milli.has_value() != whole.has_value()) std::abort();
  if (milli && (*milli < 0 || *whole < 0)) std::abort();
  if (const auto chosen = gflow::kube::read_chosen(text)) {
    const auto again = gflow::kube::read_chosen(gflow::kube::text_of(*chosen));
    const bool is_same =
        again && again->node == chosen->node && again->devices.size() == chosen->devices.size();
    if (!is_same) std::abort();
  }
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return 0;
  const gflow::kube::Pod pod = gflow::kube::pod_of(document);
  const gflow::kube::Node node = gflow::kube::node_of(document);
  (void)gflow::kube::request_of(pod);
  (void)gflow::kube::priority_of(pod.priority);
  (void)gflow::kube::extras_of(pod);
  (void)gflow::kube::devices_of(node);
  (void)gflow::kube::refusal_of(node, pod.wishes);
  return 0;
}
