// SPDX-License-Identifier: Apache-2.0
// What of the machine can be asked for on its own: nodes, devices, how those are connected.
#include <fmt/format.h>

#include <algorithm>

#include "api/machine_parts.h"
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

bool takes(const NodesQuery& query, const api::NodeStateView& view) {
  const auto has = [&view](const std::string& label) {
    return std::ranges::any_of(view.node.labels, [&label](const Label& one) {
      return fmt::format("{}={}", one.key, one.value) == label;
    });
  };
  return is_one_of(query.names, view.node.name) && std::ranges::all_of(query.labels, has) &&
         (!query.ready || *query.ready == view.ready()) &&
         (!query.drained || *query.drained == view.node.drained);
}

bool takes(const DevicesQuery& query, const api::DeviceOnNodeView& view) {
  const api::DeviceView& device = view.device;
  const auto is_its = [&device](const std::string& model) {
    return catalogue::answers(model, device.model_short);
  };
  return is_one_of(query.nodes, view.node) && is_one_of(query.vendors, device.device.vendor) &&
         (query.models.empty() || std::ranges::any_of(query.models, is_its)) &&
         (!query.available || *query.available == device.available()) &&
         (!query.drained || *query.drained == device.drained);
}

std::vector<api::NodeStateView> all_nodes(const Exchange& exchange) {
  const Service& service = exchange.service;
  std::vector<api::UnhealthyNode> unhealthy = unhealthy_views(exchange.caller, service);
  std::vector<api::NodeStateView> nodes;
  for (api::NodeView& node : node_views_for(exchange.caller, service)) {
    const auto at = std::ranges::find(unhealthy, node.name, &api::UnhealthyNode::node);
    api::NodeStateView& view = nodes.emplace_back();
    if (at != unhealthy.end()) view.unhealthy = std::move(*at);
    view.node = std::move(node);
  }
  return nodes;
}

std::vector<api::DeviceOnNodeView> all_devices(const Exchange& exchange) {
  std::vector<api::DeviceOnNodeView> devices;
  for (api::NodeView& node : node_views_for(exchange.caller, exchange.service)) {
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

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void list_nodes(Exchange exchange, NodesQuery query) {
  api::NodeList list{all_nodes(exchange)};
  std::erase_if(list.nodes, [&query](const auto& node) { return !takes(query, node); });
  exchange.respond(json_reply_of(std::move(list)));
}

void show_node(Exchange exchange) {
  for (api::NodeStateView& view : all_nodes(exchange)) {
    if (view.node.name != exchange.segment) continue;
    return exchange.respond(json_reply_of(std::move(view)));
  }
  exchange.respond(problem(no_node(exchange.segment, exchange.service.state()).error()));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void list_devices(Exchange exchange, DevicesQuery query) {
  api::DeviceList list{all_devices(exchange)};
  std::erase_if(list.devices, [&query](const auto& device) { return !takes(query, device); });
  exchange.respond(json_reply_of(std::move(list)));
}

void show_device(Exchange exchange) {
  for (api::DeviceOnNodeView& view : all_devices(exchange)) {
    if (view.device.device.uuid != exchange.segment) continue;
    return exchange.respond(json_reply_of(std::move(view)));
  }
  exchange.respond(
      problem(Error{Code::NotFound,
                    tr_format("there is no device '{}'; GET /api/v1/devices has their UUIDs",
                              printable(exchange.segment.substr(0, 100)))}));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void show_topology(Exchange exchange, TopologyQuery query) {
  api::TopologyList list;
  for (const auto& [name, record] : exchange.service.state().nodes()) {
    if (!is_one_of(query.nodes, name)) continue;
    api::NodeTopologyView& node = list.nodes.emplace_back();
    node.node = name;
    for (const Device& device : record.machine.devices) node.gpu_indices.push_back(device.index);
    node.topology = api::view_of(record.machine.topology);
  }
  exchange.respond(json_reply_of(std::move(list)));
}

}  // namespace gflow::server
