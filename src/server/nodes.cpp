// SPDX-License-Identifier: Apache-2.0
// What of the machine can be asked for on its own: nodes, devices, how those are connected.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "api/machine_parts.h"
#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "server/handlers.h"
#include "server/views.h"

namespace gflow::server {
namespace {

bool is_one_of(const std::vector<std::string>& wanted, std::string_view value) {
  return wanted.empty() || std::ranges::any_of(wanted, [value](const std::string& pattern) {
           return glob_match(pattern, value);
         });
}

/// What nodes or devices are asked for; what is not said is any.
struct Wanted {
  std::vector<std::string> nodes;   ///< by name; * and ? stand for others
  std::vector<std::string> labels;  ///< "zone=a": all of these
  std::vector<std::string> models;  ///< as read_model() writes them
  std::vector<std::string> vendors;
  std::optional<bool> ready;
  std::optional<bool> available;
  std::optional<bool> drained;

  [[nodiscard]] bool takes(const api::NodeStateView& view) const {
    const auto has = [&view](const std::string& label) {
      return std::ranges::any_of(view.node.labels, [&label](const Label& one) {
        return fmt::format("{}={}", one.key, one.value) == label;
      });
    };
    return is_one_of(nodes, view.node.name) && std::ranges::all_of(labels, has) &&
           (!ready || *ready == view.ready()) && (!drained || *drained == view.node.drained);
  }
  [[nodiscard]] bool is_of_model(std::string_view model) const {
    return models.empty() || std::ranges::any_of(models, [model](const std::string& wanted) {
             return catalogue::answers(wanted, model);
           });
  }
  [[nodiscard]] bool takes(const api::DeviceOnNodeView& view) const {
    const api::DeviceView& device = view.device;
    return is_one_of(nodes, view.node) && is_one_of(vendors, device.device.vendor) &&
           is_of_model(device.model_short) && (!available || *available == device.available()) &&
           (!drained || *drained == device.drained);
  }
};

void add_list(std::vector<std::string>& list, std::string_view text) {
  for (const std::string_view one : split(text, ',')) list.emplace_back(trim(one));
}

Result<void> add_models(std::vector<std::string>& models, std::string_view text) {
  for (const std::string_view one : split(text, ',')) {
    models.push_back(catalogue::read_model(trim(one)));
    if (!models.back().empty()) continue;
    return fail(Code::Usage,
                tr_format("model: '{}' is not a model of GPUs; write A100 or RTX3090",
                          printable(one.substr(0, 100))));
  }
  return {};
}

Result<Wanted> read_wanted(std::string_view query) {
  Wanted wanted;
  for (const api::Parameter& parameter : GF_TRY(api::read_parameters(query))) {
    const auto& [name, value] = parameter;
    if (name == "name" || name == "node") add_list(wanted.nodes, value);
    if (name == "label") add_list(wanted.labels, value);
    if (name == "model") {
      GF_CHECK(add_models(wanted.models, value));
    }
    if (name == "vendor") add_list(wanted.vendors, value);
    if (name == "ready") wanted.ready = GF_TRY(api::truth_of(parameter));
    if (name == "available") wanted.available = GF_TRY(api::truth_of(parameter));
    if (name == "drained") wanted.drained = GF_TRY(api::truth_of(parameter));
  }
  return wanted;
}

std::vector<api::NodeStateView> all_nodes(const Service& service) {
  std::vector<api::UnhealthyNode> unhealthy = unhealthy_views(service);
  std::vector<api::NodeStateView> nodes;
  for (api::NodeView& node : node_views(service)) {
    const auto at = std::ranges::find(unhealthy, node.name, &api::UnhealthyNode::node);
    api::NodeStateView& view = nodes.emplace_back();
    if (at != unhealthy.end()) view.unhealthy = std::move(*at);
    view.node = std::move(node);
  }
  return nodes;
}

std::vector<api::DeviceOnNodeView> all_devices(const Service& service) {
  std::vector<api::DeviceOnNodeView> devices;
  for (api::NodeView& node : node_views(service)) {
    for (api::DeviceView& device : node.devices) {
      devices.push_back({node.name, std::move(device)});
    }
  }
  return devices;
}

std::unexpected<Error> no_node(const std::string& name, const engine::State& state) {
  std::vector<std::string> names;
  for (const auto& [known, record] : state.nodes()) names.push_back(known);
  const std::string shown = printable(name.substr(0, 100));
  const auto near = nearest(name.substr(0, 100), names);
  return fail(Code::NotFound,
              near ? tr_format("there is no node '{}'; did you mean '{}'?", shown, *near)
                   : tr_format("there is no node '{}'", shown));
}

}  // namespace

void list_nodes(Exchange exchange) {
  const auto wanted = read_wanted(exchange.request.query);
  if (!wanted) return exchange.respond(problem(wanted.error()));
  api::NodeList list{all_nodes(exchange.service)};
  std::erase_if(list.nodes, [&wanted](const auto& node) { return !wanted->takes(node); });
  exchange.respond(json_reply_of(std::move(list)));
}

void show_node(Exchange exchange) {
  for (api::NodeStateView& view : all_nodes(exchange.service)) {
    if (view.node.name != exchange.segment) continue;
    return exchange.respond(json_reply_of(std::move(view)));
  }
  exchange.respond(problem(no_node(exchange.segment, exchange.service.state()).error()));
}

void list_devices(Exchange exchange) {
  const auto wanted = read_wanted(exchange.request.query);
  if (!wanted) return exchange.respond(problem(wanted.error()));
  api::DeviceList list{all_devices(exchange.service)};
  std::erase_if(list.devices, [&wanted](const auto& device) { return !wanted->takes(device); });
  exchange.respond(json_reply_of(std::move(list)));
}

void show_device(Exchange exchange) {
  for (api::DeviceOnNodeView& view : all_devices(exchange.service)) {
    if (view.device.device.uuid != exchange.segment) continue;
    return exchange.respond(json_reply_of(std::move(view)));
  }
  exchange.respond(
      problem(Error{Code::NotFound,
                    tr_format("there is no device '{}'; GET /api/v1/devices has their UUIDs",
                              printable(exchange.segment.substr(0, 100)))}));
}

void show_topology(Exchange exchange) {
  const auto wanted = read_wanted(exchange.request.query);
  if (!wanted) return exchange.respond(problem(wanted.error()));
  api::TopologyList list;
  for (const auto& [name, record] : exchange.service.state().nodes()) {
    if (!is_one_of(wanted->nodes, name)) continue;
    api::NodeTopologyView& node = list.nodes.emplace_back();
    node.node = name;
    for (const Device& device : record.machine.devices) node.gpu_indices.push_back(device.index);
    node.topology = api::view_of(record.machine.topology);
  }
  exchange.respond(json_reply_of(std::move(list)));
}

}  // namespace gflow::server
