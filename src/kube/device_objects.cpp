// SPDX-License-Identifier: Apache-2.0
#include "kube/device_objects.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "kube/fields.h"

namespace gflow::kube {
namespace {

using Json = nlohmann::json;

bool is_set_in(const Json& of, const char* key) {
  const Json& value = part(of, key);
  return value.is_boolean() && value.get<bool>();
}

std::int64_t whole_number(const Json& of, const char* key, std::int64_t otherwise) {
  const Json& value = part(of, key);
  return value.is_number_integer() ? value.get<std::int64_t>() : otherwise;
}

std::string dumped_json(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::string> texts_in(const Json& of, const char* key) {
  std::vector<std::string> all;
  for (const Json& one : part(of, key)) {
    if (one.is_string()) all.push_back(one.get<std::string>());
  }
  return all;
}

std::optional<claims::Amount> amount_in(const Json& value) {
  if (value.is_null()) return std::nullopt;
  const auto read =
      claims::read_amount(value.is_string() ? value.get<std::string>() : value.dump());
  return read ? std::optional(*read) : std::nullopt;
}

claims::Amounts amounts_in(const Json& of) {
  claims::Amounts all;
  for (const auto& [name, value] : of.items()) {
    if (const auto amount = amount_in(value)) all[name] = *amount;
  }
  return all;
}

/// By the names of their sets.
std::map<std::string, claims::Amounts> counters_in(const Json& sets, const char* name) {
  std::map<std::string, claims::Amounts> all;
  for (const Json& set : sets) {
    claims::Amounts& counters = all[text(set, name)];
    for (const auto& [counter, value] : part(set, "counters").items()) {
      if (const auto amount = amount_in(part(value, "value"))) counters[counter] = *amount;
    }
  }
  return all;
}

std::optional<claims::RequestPolicy> policy_in(const Json& policy) {
  if (!policy.is_object()) return std::nullopt;
  claims::RequestPolicy read;
  read.otherwise = amount_in(part(policy, "default"));
  for (const Json& value : part(policy, "validValues")) {
    if (const auto amount = amount_in(value)) read.values.push_back(*amount);
  }
  const Json& range = part(policy, "validRange");
  if (const auto min = amount_in(part(range, "min"))) {
    read.range = {*min, amount_in(part(range, "max")), amount_in(part(range, "step"))};
  }
  return read;
}

std::optional<claims::Attribute> attribute_in(const Json& value) {
  using Kind = claims::Attribute::Kind;
  if (const Json& number = part(value, "int"); number.is_number_integer()) {
    return claims::Attribute{Kind::Int, number.dump()};
  }
  if (const Json& is = part(value, "bool"); is.is_boolean()) {
    return claims::Attribute{Kind::Bool, is.dump()};
  }
  if (part(value, "string").is_string()) {
    return claims::Attribute{Kind::String, text(value, "string")};
  }
  const std::string version = text(value, "version");
  if (!claims::read_version(version)) return std::nullopt;
  return claims::Attribute{Kind::Version, version};
}

claims::Where place_in(const Json& of) {
  const Json& selector = part(of, "nodeSelector");
  return {text(of, "nodeName"),
          selector.is_object() ? dumped_json(selector) : "",
          is_set_in(of, "allNodes")};
}

claims::Device device_in(const Json& written, bool has_place) {
  claims::Device device;
  device.name = text(written, "name");
  for (const auto& [name, value] : part(written, "attributes").items()) {
    const auto attribute = attribute_in(value);
    if (attribute) device.attributes[name] = *attribute;
    if (!attribute) device.trouble = fmt::format("attribute {} cannot be read", name);
  }
  for (const auto& [name, value] : part(written, "capacity").items()) {
    const auto amount = amount_in(part(value, "value"));
    if (!amount) continue;
    device.capacity[name] = {*amount, policy_in(part(value, "requestPolicy"))};
  }
  for (const Json& taint : part(written, "taints")) {
    device.taints.push_back({text(taint, "key"), text(taint, "value"), text(taint, "effect")});
  }
  device.is_shared = is_set_in(written, "allowMultipleAllocations");
  device.counters = counters_in(part(written, "consumesCounters"), "counterSet");
  device.binds_to_node = is_set_in(written, "bindsToNode");
  device.has_conditions = !part(written, "bindingConditions").empty();
  if (has_place) device.where = place_in(written);
  return device;
}

std::vector<claims::DeviceToleration> tolerations_in(const Json& request) {
  std::vector<claims::DeviceToleration> all;
  for (const Json& one : part(request, "tolerations")) {
    all.push_back(
        {text(one, "key"), text(one, "operator"), text(one, "value"), text(one, "effect")});
  }
  return all;
}

/// With what nobody here judges in `trouble`.
claims::Request request_in(const Json& written, const std::string& name, std::string& trouble) {
  claims::Request request;
  request.name = name;
  request.device_class = text(written, "deviceClassName");
  for (const Json& selector : part(written, "selectors")) {
    const Json& cel = part(selector, "cel");
    if (!cel.is_object()) trouble = fmt::format("request {} has a selector that is not CEL", name);
    request.selectors.push_back(text(cel, "expression"));
  }
  const std::string mode = text(written, "allocationMode");
  request.is_all = mode == "All";
  if (!mode.empty() && mode != "All" && mode != "ExactCount") {
    trouble = fmt::format("request {} has the allocationMode {}", name, mode);
  }
  request.count = whole_number(written, "count", 1);
  request.capacity = amounts_in(part(part(written, "capacity"), "requests"));
  for (const auto& [of, amount] : request.capacity) {
    if (amount < claims::Amount{})
      trouble = fmt::format("request {} has less than no {}", name, of);
  }
  request.tolerations = tolerations_in(written);
  const Json& tolerations = part(written, "tolerations");
  if (!tolerations.empty()) request.tolerations_text = dumped_json(tolerations);
  if (is_set_in(written, "adminAccess")) trouble = fmt::format("request {} has adminAccess", name);
  if (request.device_class.empty()) trouble = fmt::format("request {} has no class", name);
  return request;
}

std::vector<claims::Request> alternatives_in(const Json& written, std::string& trouble) {
  const std::string name = text(written, "name");
  const Json& exactly = part(written, "exactly");
  if (exactly.is_object()) return {request_in(exactly, name, trouble)};
  std::vector<claims::Request> all;
  for (const Json& one : part(written, "firstAvailable")) {
    all.push_back(request_in(one, name + "/" + text(one, "name"), trouble));
  }
  if (all.empty()) trouble = fmt::format("request {} is of an unknown kind", name);
  return all;
}

/// What is beside `requests`.
std::string config_text(Json config) {
  config.erase("requests");
  config.erase("source");
  return dumped_json(config);
}

claims::ClaimSpec spec_in(const Json& devices) {
  claims::ClaimSpec spec;
  std::string trouble;
  for (const Json& request : part(devices, "requests")) {
    spec.requests.push_back(alternatives_in(request, trouble));
  }
  for (const Json& one : part(devices, "constraints")) {
    const std::string same = text(one, "matchAttribute");
    const std::string distinct = text(one, "distinctAttribute");
    if (same.empty() && distinct.empty()) trouble = "a constraint is of an unknown kind";
    spec.constraints.push_back(
        {same.empty(), same.empty() ? distinct : same, texts_in(one, "requests")});
  }
  for (const Json& one : part(devices, "config")) {
    if (one.is_object())
      spec.config.push_back({texts_in(one, "requests"), config_text(one), false});
  }
  if (!trouble.empty()) {
    spec.trouble = trouble + ", which gflow-kube does not judge: leave it to another scheduler";
  }
  return spec;
}

std::string pod_that_owns(const Json& metadata) {
  for (const Json& owner : part(metadata, "ownerReferences")) {
    if (is_set_in(owner, "controller") && text(owner, "kind") == "Pod") return text(owner, "uid");
  }
  return {};
}

Json result_json(const claims::GivenDevice& device) {
  Json result = {{"request", device.request},
                 {"driver", device.id.driver},
                 {"pool", device.id.pool},
                 {"device", device.id.device}};
  if (!device.tolerations_text.empty()) {
    result["tolerations"] = Json::parse(device.tolerations_text, nullptr, false);
  }
  if (!device.is_shared) return result;
  result["shareID"] = nullptr;
  for (const auto& [name, amount] : device.consumed) {
    result["consumedCapacity"][name] = claims::to_text(amount);
  }
  return result;
}

/// As one term: of the node, or of all that the devices ask for. Null: of no node in particular;
/// discarded: it takes more than one term.
Json selector_json(const std::vector<claims::GivenDevice>& devices, const std::string& node) {
  Json expressions = Json::array();
  Json fields = Json::array();
  const auto add = [](Json& to, const Json& from) {
    for (const Json& one : from) {
      if (std::ranges::find(to, one) == to.end()) to.push_back(one);
    }
  };
  for (const claims::GivenDevice& device : devices) {
    if (!device.where.node.empty() || device.binds_to_node) {
      const Json is_node = {
          {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
      const Json term = {{"matchFields", Json::array({is_node})}};
      return {{"nodeSelectorTerms", Json::array({term})}};
    }
    if (device.where.selector.empty()) continue;
    const Json selector = Json::parse(device.where.selector, nullptr, false);
    const Json& terms = part(selector, "nodeSelectorTerms");
    if (terms.size() > 1) return Json(Json::value_t::discarded);
    for (const Json& term : terms) {
      add(expressions, part(term, "matchExpressions"));
      add(fields, part(term, "matchFields"));
    }
  }
  Json term = Json::object();
  if (!expressions.empty()) term["matchExpressions"] = expressions;
  if (!fields.empty()) term["matchFields"] = fields;
  if (term.empty()) return nullptr;
  return {{"nodeSelectorTerms", Json::array({term})}};
}

Json config_json(const std::vector<claims::Config>& config) {
  Json all = Json::array();
  for (const claims::Config& one : config) {
    Json made = Json::parse(one.text, nullptr, false);
    if (!made.is_object()) continue;
    made["source"] = one.is_of_class ? "FromClass" : "FromClaim";
    if (!one.requests.empty()) made["requests"] = one.requests;
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace

claims::Slice slice_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  const Json& pool = part(spec, "pool");
  claims::Slice slice;
  slice.uid = text(metadata, "uid");
  slice.name = text(metadata, "name");
  slice.driver = text(spec, "driver");
  slice.pool = text(pool, "name");
  slice.generation = whole_number(pool, "generation", 0);
  slice.slices = whole_number(pool, "resourceSliceCount", 0);
  const bool is_by_device = is_set_in(spec, "perDeviceNodeSelection");
  if (!is_by_device) slice.where = place_in(spec);
  for (const Json& device : part(spec, "devices")) {
    slice.devices.push_back(device_in(device, is_by_device));
  }
  slice.counters = counters_in(part(spec, "sharedCounters"), "name");
  return slice;
}

claims::DeviceClass device_class_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& spec = part(object, "spec");
  claims::DeviceClass made;
  made.uid = text(metadata, "uid");
  made.name = text(metadata, "name");
  for (const Json& selector : part(spec, "selectors")) {
    made.selectors.push_back(text(part(selector, "cel"), "expression"));
  }
  for (const Json& config : part(spec, "config")) {
    if (config.is_object()) made.config.push_back(config_text(config));
  }
  return made;
}

std::vector<claims::GivenDevice> devices_in(const Json& allocation) {
  std::vector<claims::GivenDevice> devices;
  for (const Json& result : part(part(allocation, "devices"), "results")) {
    if (is_set_in(result, "adminAccess")) continue;  // who looks on takes nothing
    claims::GivenDevice device;
    device.request = text(result, "request");
    device.id = {text(result, "driver"), text(result, "pool"), text(result, "device")};
    device.is_shared = !part(result, "shareID").is_null() || result.contains("shareID");
    device.consumed = amounts_in(part(result, "consumedCapacity"));
    devices.push_back(std::move(device));
  }
  return devices;
}

std::vector<Term> node_terms_of(const Json& selector) {
  std::vector<Term> terms;
  for (const Json& term : part(selector, "nodeSelectorTerms")) terms.push_back(node_term_of(term));
  return terms;
}

ResourceClaim resource_claim_of(const Json& object) {
  const Json& metadata = part(object, "metadata");
  const Json& devices = part(part(object, "spec"), "devices");
  const Json& status = part(object, "status");
  ResourceClaim claim;
  claim.uid = text(metadata, "uid");
  claim.name_space = text(metadata, "namespace");
  claim.name = text(metadata, "name");
  claim.owner = pod_that_owns(metadata);
  claim.is_deleted = metadata.is_object() && metadata.contains("deletionTimestamp");
  claim.spec_text = dumped_json(devices);
  claim.spec = spec_in(devices);
  if (const Json& allocation = part(status, "allocation"); allocation.is_object()) {
    claim.allocation.emplace();
    claim.allocation->devices = devices_in(allocation);
    const Json& selector = part(allocation, "nodeSelector");
    if (selector.is_object()) claim.allocation->where = node_terms_of(selector);
  }
  for (const Json& consumer : part(status, "reservedFor")) {
    claim.consumers.insert(text(consumer, "uid"));
  }
  return claim;
}

std::optional<DeviceAllocation> allocation_of(const claims::Given& given, const std::string& node) {
  DeviceAllocation made{.devices = given.devices};
  Json devices = {{"results", Json::array()}};
  for (const claims::GivenDevice& device : given.devices) {
    devices["results"].push_back(result_json(device));
  }
  if (Json config = config_json(given.config); !config.empty()) {
    devices["config"] = std::move(config);
  }
  Json allocation = {{"devices", std::move(devices)}};
  Json selector = selector_json(given.devices, node);
  if (selector.is_discarded()) return std::nullopt;
  if (selector.is_object()) {
    made.where = node_terms_of(selector);
    allocation["nodeSelector"] = std::move(selector);
  }
  made.text = dumped_json(allocation);
  return made;
}

}  // namespace gflow::kube
