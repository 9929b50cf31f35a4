// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "core/job.h"
#include "core/machine.h"

namespace gflow::daemon {

/// The most device memory each running job was seen to use on one of its devices. Begins anew with
/// the daemon: of a job that was taken over, what was used before is not known.
class GpuPeaks {
 public:
  void see(const Machine& machine);
  /// What was seen of a job whose attempt has ended, 0 if nothing; it is forgotten.
  [[nodiscard]] Memory take(JobId job);

 private:
  std::map<JobId, Memory> peaks_;
};

}  // namespace gflow::daemon
