// SPDX-License-Identifier: Apache-2.0
#include "engine/launch.h"

#include <algorithm>

#include "core/job_devices.h"

namespace gflow::engine {
namespace {

DeviceGrant grant_of(const Index& index, const Machine& machine, const Request& request, int gpu) {
  DeviceGrant grant{.index = gpu,
                    .uuid = "",
                    .vendor = "",
                    .share = request.share,
                    .share_limit = request.share_limit};
  const auto device = std::ranges::find(machine.devices, gpu, &Device::index);
  if (device == machine.devices.end()) return grant;
  grant.uuid = device->uuid;
  grant.vendor = device->vendor;
  grant.memory = index.ledger.reserve_on(placement::demand_of(request),
                                         device->memory_total.value_or(Memory{}));
  return grant;
}

/// Only one whole GPU of NVIDIA's can be parked.
bool is_lendable(const LaunchOrder& order) {
  return order.mode == GpuMode::Whole && !order.only_holds && order.devices.size() == 1 &&
         order.devices.front().vendor == "nvidia" && !order.devices.front().uuid.empty();
}

}  // namespace

LaunchOrder launch_order(const Index& index, const Job& job) {
  const Attempt& attempt = *attempt_of(job);
  const Machine& machine = index.nodes.at(attempt.allocation.node).machine;
  LaunchOrder order;
  order.job = job.id;
  order.attempt = attempt.number;
  order.node = machine.name;
  order.user = job.spec.user;
  order.work_dir = job.spec.work_dir;
  for (const int gpu : attempt.allocation.gpus) {
    order.devices.push_back(grant_of(index, machine, job.spec.request, gpu));
  }
  order.mode = job.spec.request.mode;
  order.only_holds = job.spec.allocation;
  order.watches = index.policy.lend_idle_after > std::chrono::seconds(0) && is_lendable(order);
  order.filter = device_filter_of(job, attempt, machine);
  order.cpus = attempt.allocation.cpus;
  order.time_limit = job.spec.time_limit;
  order.grace = job.spec.grace;
  order.limits = {.cpus = job.spec.request.cpus, .memory = job.spec.request.memory};
  order.environment = launch_environment(job, attempt, machine);
  return order;
}

}  // namespace gflow::engine
