// SPDX-License-Identifier: Apache-2.0
#include "cli/info/free_gpus.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job/job_text.h"
#include "cli/submit/gpu_options.h"
#include "config/gpu_config.h"
#include "core/gpu_request.h"

namespace gflow::cli {

namespace {

Result<Request> free_request(const Invocation& invocation, const Context& context) {
  const GpuConfig config = GF_TRY(context.gpu_config());
  const auto gpus = parse_gpu_request(invocation.get("free"), config.resources);
  if (!gpus) return with_context(gpus.error(), "--free");
  Request request;
  apply(*gpus, request);
  if (request.gpus == 0) {
    return fail(Code::Usage,
                tr_format("--free '{}' requests no GPU; write how many, such as --free 1",
                          printable(invocation.get("free"))));
  }
  GF_CHECK(read_gpu_options(invocation, config.resources, request));
  return request;
}

/// Why it does not get them.
std::string lack_text(const api::PlacementView& view) {
  if (view.limit) return printable(view.limit->text);
  if (view.blockers.empty()) return tr("the scheduler does not say why");
  const api::BlockerView& first = view.blockers.front();
  const std::string shortage = shortage_text(first);
  return shortage.empty() ? printable(first.text) : shortage;
}

}  // namespace

std::vector<Option> free_options() {
  const std::string heading = tr("Free GPUs");
  std::vector<Option> all = {
      {.name = "free",
       .value = "REQUEST",
       .help = tr("Print the indices of the GPUs that a job with this request (as 'gbatch --gpus') "
                  "would get now, such as 0,3. Reserves nothing: 'galloc' does. If they are not "
                  "free, says why and exits with 6; with 7 if they can never be had here."),
       .group = heading,
       .excludes = {"brief", "long", "topo"}}};
  for (Option& option : gpu_options()) {
    if (option.name != "gpu-memory" && option.name != "gpu-model") continue;
    option.group = heading;
    option.needs = "free";
    all.push_back(std::move(option));
  }
  return all;
}

Result<api::FreeGpus> free_gpus(const api::PlacementView& view, const api::MachineView& machine) {
  if (view.starts.empty() || view.starts.front().places.empty()) {
    return fail(Code::WrongState,
                tr_format("not free now: {}; 'galloc' waits for GPUs and keeps them, 'gbatch' runs "
                          "a job when they are free",
                          lack_text(view)));
  }
  const api::StartPlace& place = view.starts.front().places.front();
  api::FreeGpus free{.request = view.request, .node = place.node, .gpus = {}};
  const auto node = std::ranges::find(machine.nodes, place.node, &api::NodeView::name);
  for (const int index : place.gpus) {
    api::FreeGpu& gpu = free.gpus.emplace_back();
    gpu.index = index;
    if (node == machine.nodes.end()) continue;
    const auto device = std::ranges::find(
        node->devices, index, [](const api::DeviceView& one) { return one.device.index; });
    if (device == node->devices.end()) continue;
    gpu.uuid = device->device.uuid;
    gpu.model = device->device.model;
  }
  return free;
}

std::string free_gpus_text(const api::FreeGpus& free) {
  std::vector<int> indices;
  for (const api::FreeGpu& gpu : free.gpus) indices.push_back(gpu.index);
  return fmt::format("{}", fmt::join(indices, ","));
}

Result<int> print_free_gpus(const Invocation& invocation, Context& context) {
  api::PlaceRequest asked{.request = GF_TRY(free_request(invocation, context)), .name = {}};
  asked.most = 1;
  const api::PlacementView view = GF_TRY(context.daemon().place(asked));
  const api::MachineView machine = GF_TRY(context.daemon().machine());
  const api::FreeGpus free = GF_TRY(free_gpus(view, machine));
  if (machine.nodes.size() > 1 || context.is_remote()) {
    context.note(tr_format("these are GPUs of node {}", printable(free.node)));
  }
  context.out << (context.json ? api::write(free) : free_gpus_text(free)) << '\n';
  return 0;
}

}  // namespace gflow::cli
