// SPDX-License-Identifier: Apache-2.0
#include "daemon/gpu_peaks.h"

#include <algorithm>

namespace gflow::daemon {

void GpuPeaks::see(const Machine& machine) {
  for (const Device& device : machine.devices) {
    for (const JobUse& use : device.uses) {
      Memory& peak = peaks_[JobId(use.job)];
      peak = std::max(peak, use.memory.value_or(Memory{}));
    }
  }
}

Memory GpuPeaks::take(JobId job) {
  const auto found = peaks_.find(job);
  if (found == peaks_.end()) return {};
  const Memory peak = found->second;
  peaks_.erase(found);
  return peak;
}

}  // namespace gflow::daemon
