// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "api/gpu_resources.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "core/gpu_request.h"
#include "server/found_allocation.h"
#include "server/gpu_need.h"
#include "server/gpu_nodes.h"
#include "server/handlers.h"
#include "server/shown.h"
#include "server/views.h"

namespace gflow::server {
namespace {

/// Which devices are asked for.
struct DeviceFilter {
  gflow::Request request;  ///< its vendor and models
  Memory least{};

  [[nodiscard]] bool takes(const api::DeviceView& device) const {
    const auto is_its = [&device](const std::string& model) {
      return catalogue::answers(model, device.model_short);
    };
    if (!request.models.empty() && std::ranges::none_of(request.models, is_its)) return false;
    if (!request.vendor.empty() && device.device.vendor != request.vendor) return false;
    return device.device.memory_total.value_or(Memory{}) >= least;
  }
};

Result<DeviceFilter> filter_of(const GpuNodesQuery& query, const engine::State& state) {
  DeviceFilter filter;
  if (const auto read = read_gpu_type(query.gpu_type, filter.request); !read) {
    return fail(read.error().code, tr_format("{}: {}", "gpu_type", read.error().message));
  }
  filter.least = memory_wanted(filter.request, query.min_memory_gb, state);
  return filter;
}

/// The nodes that have such a device free.
api::GpuStatus available(const Service& service,
                         std::vector<api::NodeView> nodes,
                         const DeviceFilter& filter) {
  api::GpuStatus status;
  status.total_nodes = static_cast<int>(nodes.size());
  status.timestamp = timestamp_of(service.now().wall);
  for (api::NodeView& node : nodes) {
    std::erase_if(node.devices,
                  [&filter](const api::DeviceView& device) { return !filter.takes(device); });
  }
  status.available_nodes = gpu_nodes_of(nodes);
  std::erase_if(status.available_nodes,
                [](const api::GpuNode& node) { return node.available_gpus == 0; });
  return status;
}

/// The nodes, where something is known of their devices; else that is answered.
std::optional<std::vector<api::NodeView>> known_nodes(Exchange& exchange) {
  std::vector<api::NodeView> nodes = node_views_for(exchange.caller, exchange.service);
  const auto trouble = check_devices_known(nodes);
  if (!trouble) return nodes;
  exchange.respond(problem(*trouble, kUnavailable));
  return std::nullopt;
}

/// Whether it can be met, and is, by GPUs nobody holds.
Result<void> judge_request(const Exchange& exchange,
                           const gflow::Request& request,
                           api::GpuValidation& validation) {
  const engine::State& state = exchange.service.state();
  JobSpec spec;
  spec.user = GF_TRY(job_owner(exchange.caller));
  spec.request = request;
  (void)GF_TRY(state.rank(request, 1));
  validation.valid = true;
  const engine::Starts starts = GF_TRY(state.starts(spec, 1));
  validation.available = !starts.jobs.empty();
  if (!validation.available) {
    const auto preview = GF_TRY(state.preview(spec, exchange.service.now()));
    const Shown shown(exchange.caller, state);
    validation.error_message = why_text(shown.of(preview.blockers, spec.user));
  }
  return {};
}

/// As an allocation of it would be answered.
api::Asked<api::GpuValidation> validation_of(const Exchange& exchange, const api::GpuNeed& need) {
  const Service& service = exchange.service;
  api::GpuValidation validation;
  if (need.allocation_id.is_set()) {
    const auto job = find_allocation(exchange, need);
    if (!job) return std::unexpected(job.error());
    const auto view = view_of_allocation(exchange.caller, service, **job);
    const auto same = check_is_of(need, **job, view.gpu_config, service.state());
    if (!same) return std::unexpected(same.error());
    validation.request = gpu_request_text((*job)->spec.request);
    validation.valid = true;
    validation.available = view.gpu_config.has_value();
    validation.error_message = view.error_message;
    return validation;
  }
  const auto request = request_of(need, service.state());
  if (!request) return std::unexpected(request.error());
  const auto processes = held_for(need, exchange.caller);
  if (!processes) return std::unexpected(processes.error());
  validation.request = gpu_request_text(*request);
  const auto judged = judge_request(exchange, *request, validation);
  if (!judged) validation.error_message = judged.error().message;
  return validation;
}

/// For people: "gpu_type: 'fast' is not a model of GPUs".
std::string text_of(const api::FieldError& wrong) {
  return tr_format("{}: {}", wrong.pointer.substr(1), wrong.detail);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void answer_validation(Exchange exchange, api::GpuNeed need) {
  if (!known_nodes(exchange)) return;
  auto validation = validation_of(exchange, need);
  if (validation) return exchange.respond(short_reply_of(*std::move(validation)));
  // Where nothing could be found out, nothing is known of the need.
  if (validation.error().fields.empty()) return exchange.respond(problem(validation.error()));
  api::GpuValidation invalid;
  invalid.error_message = text_of(validation.error().fields.front());
  exchange.respond(short_reply_of(std::move(invalid)));
}

}  // namespace

void show_gpu_status(Exchange exchange) {
  auto nodes = known_nodes(exchange);
  if (!nodes) return;
  const api::GpuUtilization utilization = utilization_of(*nodes);
  api::GpuStatus status = available(exchange.service, std::move(*nodes), {});
  status.utilization = utilization;
  exchange.respond(short_reply_of(std::move(status)));
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void list_gpu_nodes(Exchange exchange, GpuNodesQuery query) {
  const auto filter = filter_of(query, exchange.service.state());
  if (!filter) return exchange.respond(problem(filter.error()));
  auto nodes = known_nodes(exchange);
  if (!nodes) return;
  exchange.respond(json_reply_of(available(exchange.service, std::move(*nodes), *filter)));
}

void show_gpu_health(Exchange exchange) {
  api::GpuHealth health = health_of(node_views_for(exchange.caller, exchange.service),
                                    unhealthy_views(exchange.caller, exchange.service));
  health.timestamp = timestamp_of(exchange.service.now().wall);
  const bool is_ready = health.initialized;
  Reply reply = short_reply_of(std::move(health));
  if (!is_ready) reply.status = kUnavailable;
  exchange.respond(std::move(reply));
}

void show_gpu_monitoring(Exchange exchange) {
  const auto nodes = known_nodes(exchange);
  if (!nodes) return;
  exchange.respond(
      json_reply_of(api::GpuMonitoring{.utilization = utilization_of(*nodes),
                                       .nodes = monitored(*nodes),
                                       .timestamp = timestamp_of(exchange.service.now().wall)}));
}

void validate_gpu_need(Exchange exchange) {
  read_body<api::GpuNeed>(std::move(exchange), api::read_gpu_need, answer_validation);
}

}  // namespace gflow::server
