// SPDX-License-Identifier: Apache-2.0
#include "core/gpu_environment.h"

#include "base/text.h"
#include "core/find_device.h"

namespace gflow {

std::map<std::string, std::string> gpu_environment(const Request& request,
                                                   const Machine& machine,
                                                   const std::vector<int>& gpus) {
  std::vector<std::string> indices;
  std::vector<std::string> uuids;
  std::string vendor;
  for (const int gpu : gpus) {
    indices.push_back(std::to_string(gpu));
    const Device* device = find_device(machine, gpu);
    uuids.push_back(device == nullptr ? "" : device->uuid);
    if (device != nullptr && vendor.empty()) vendor = device->vendor;
  }
  std::map<std::string, std::string> words;
  words["GFLOW_GPUS"] = std::to_string(gpus.size());
  words["GFLOW_GPU_INDICES"] = join(indices, ",");
  words["GFLOW_GPU_UUIDS"] = join(uuids, ",");
  words["GFLOW_GPU_VENDOR"] = vendor;
  words["GFLOW_GPU_SHARE"] = share_text(gpus.empty() ? Share{} : request.share);
  words["GFLOW_GPU_MODE"] = gpus.empty() ? "" : gpu_mode_name(request.mode);
  if (gpus.empty()) return words;
  if (request.share_limit != Share{}) {
    words["GFLOW_GPU_SHARE_LIMIT"] = share_text(request.share_limit);
  }
  if (request.gpu_memory.bytes > 0) {
    words["GFLOW_GPU_MEMORY_MIB"] = std::to_string(request.gpu_memory.bytes >> 20);
  }
  return words;
}

}  // namespace gflow
