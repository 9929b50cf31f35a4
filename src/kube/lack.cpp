// SPDX-License-Identifier: Apache-2.0
#include "kube/lack.h"

#include "core/gpu_request.h"

namespace gflow::kube {

std::string lack(const placement::Shortfall& shortfall, const gflow::Request& request) {
  if (shortfall.closed) return "node(s) do not take pods now";
  if (shortfall.devices > 0) {
    if (shortfall.devices_suitable >= request.gpus) {
      if (shortfall.gpu_memory > Memory{}) return "Insufficient GPU memory";
      if (shortfall.share > Share{}) return "Insufficient share of a GPU";
    }
    const GpuRequest gpus = gpu_request_of(request);
    const bool has_few = shortfall.devices_suitable < request.gpus;
    if (has_few && !gpus.models.empty()) return "node(s) had too few GPUs of the model";
    return "Insufficient " + resource_name(gpus, GpuResources{});
  }
  if (shortfall.milli_cpus > 0) return "Insufficient cpu";
  if (shortfall.memory > Memory{}) return "Insufficient memory";
  return shortfall.selector ? "node(s) are being looked at" : "";
}

}  // namespace gflow::kube
