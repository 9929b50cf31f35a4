// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "claims/matcher.h"
#include "kube/budgets.h"
#include "kube/device_objects.h"
#include "kube/extender.h"
#include "kube/extender_answers.h"
#include "kube/moves.h"
#include "kube/objects.h"
#include "kube/predicates.h"
#include "kube/quantity.h"
#include "kube/want.h"

namespace {

/// What kube-scheduler sends, and a pod and a node of which others are asked about.
void ask_extender(const std::string& text,
                  const gflow::kube::Pod& pod,
                  const gflow::kube::Node& node) {
  gflow::kube::Extender extender;
  extender.put(node);
  extender.put(pod);
  (void)gflow::kube::prioritize(extender, text);
  const auto args = gflow::kube::binding_args_of(text);
  if (args) (void)extender.reserve(args->uid, args->node, {});
  const auto told = gflow::kube::filter(extender, text, {});
  if (told && nlohmann::json::parse(*told, nullptr, false).is_discarded()) std::abort();
}

/// What is read of it is written so that it is read again.
void read_moves(const nlohmann::json& document) {
  const gflow::kube::MovesRecord record = gflow::kube::moves_record_of(document);
  if (!record.asked) return;
  auto again = nlohmann::json::parse(gflow::kube::patch_to_ask(*record.asked, record.version));
  again["data"].erase("answer");
  if (gflow::kube::moves_record_of(again).asked != record.asked) std::abort();
  if (record.answer) (void)gflow::kube::patch_to_answer(*record.answer, record.version);
}

/// Selectors end whatever they say, of whatever device; and a claim is given devices of a slice or
/// is not.
void allocate(const nlohmann::json& document) {
  using namespace gflow;
  claims::Slice slice = kube::slice_of(document);
  std::uint64_t serial = 0;
  for (claims::Device& device : slice.devices) {
    device.serial = ++serial;
    device.value = claims::device_value(slice.driver, device);
  }
  const std::vector<claims::Pool> pools =
      claims::gather_pools({std::make_shared<const claims::Slice>(std::move(slice))});
  const claims::Usage usage;
  std::map<std::string, claims::DeviceClass> classes;
  classes["c"] = kube::device_class_of(document);
  claims::Matcher matcher;
  const kube::ResourceClaim claim = kube::resource_claim_of(document);
  const std::vector<const claims::Pool*> here = {&pools.front()};
  const auto given =
      claims::allocate({here, usage, classes, matcher, [](const claims::Where&) { return true; }},
                       {{"x", &claim.spec}});
  for (const claims::Given& one : given.value_or(std::vector<claims::Given>{})) {
    (void)kube::allocation_of(one, "n");
  }
}

void select_devices(const std::string& text) {
  const auto selector = gflow::claims::CelExpression::read(text);
  long steps = 0;
  if (selector) (void)selector->holds(gflow::claims::device_value("d", {.name = "a"}), steps);
}

}  // namespace

/// What a cluster may hold: an annotation, a quantity, a selector of devices, a document that is
/// taken for a pod and for a node, for a disruption budget, for moves that are asked for, and for a
/// question of kube-scheduler.
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
  select_devices(text);
  const auto document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return 0;
  allocate(document);
  const gflow::kube::Pod pod = gflow::kube::pod_of(document);
  const gflow::kube::Node node = gflow::kube::node_of(document);
  (void)gflow::kube::request_of(pod);
  (void)gflow::kube::may_evict({{"", gflow::kube::budget_of(document)}}, pod);
  read_moves(document);
  (void)gflow::kube::priority_of(pod.priority);
  (void)gflow::kube::extras_of(pod);
  (void)gflow::kube::devices_of(node);
  (void)gflow::kube::refusal_of(node, pod.wishes);
  ask_extender(text, pod, node);
  return 0;
}
