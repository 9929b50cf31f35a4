// SPDX-License-Identifier: Apache-2.0
#include "placement/demand.h"

#include <algorithm>

#include "core/catalogue.h"

namespace gflow::placement {

Demand demand_of(const Request& request) {
  Demand demand = {.gpus = request.gpus,
                   .share = request.mode == GpuMode::Fraction ? request.share : Share::whole(),
                   .gpu_memory = request.gpu_memory,
                   .mode = request.mode,
                   .vendor = request.vendor,
                   .models = request.models,
                   .milli_cpus = std::int64_t{request.cpus} * 1000,
                   .memory = request.memory,
                   .nodes = request.nodes,
                   .selector = request.selector};
  if (request.gpus == 0 && !request.see_all) {
    demand.vendor.clear();
    demand.models.clear();
  }
  return demand;
}

Demand demand_of(const JobSpec& spec) {
  Demand demand = demand_of(spec.request);
  demand.borrows = spec.request.gpus > 0 && spec.preemption == Preemption::Requeue &&
                   spec.grace <= kLongestGrace;
  return demand;
}

/// A MIG device is what its GPU is cut into, so none is cut further, and who names no profile
/// means whole GPUs.
bool wants(const Demand& demand, std::string_view vendor, std::string_view model) {
  if (catalogue::is_slice(model) && (demand.mode != GpuMode::Whole || demand.models.empty())) {
    return false;
  }
  if (!demand.vendor.empty() && demand.vendor != vendor) return false;
  return demand.models.empty() || std::ranges::any_of(demand.models, [&](const std::string& name) {
           return catalogue::answers(name, model);
         });
}

Demand scored_part(Demand demand) {
  demand.memory = Memory{};
  demand.nodes = 1;
  return demand;
}

}  // namespace gflow::placement
