// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "api/types.h"
#include "base/result.h"

/// What somebody submits, as a Job of the cluster.
namespace gflow::kube {

/// What of the cluster a Job is made for.
struct JobPlace {
  std::string name_space;
  std::string scheduler;                ///< schedulerName
  std::string image;                    ///< of jobs that say none; "": they have to
  std::string gpus = "nvidia.com/gpu";  ///< what it calls GPUs of any vendor
  bool has_allocations = false;  ///< some node gives containers what was chosen (gflow/allocation)
};

/// One pod that is not started again by its kubelet, with all that it needs in the object itself:
/// there is nothing else that could be missing, or be left. Its script is an annotation of the pod,
/// which the kubelet makes a file of. `name`: of the object; `submission`: what it is known again
/// by. Errors: Usage and Refused, for what a pod cannot be or do, with what does it.
[[nodiscard]] Result<nlohmann::json> job_manifest(const JobSpec& spec,
                                                  const Payload& payload,
                                                  const JobPlace& place,
                                                  const std::string& name,
                                                  const std::string& submission);

/// A name for the object: what it is called, or its program, and a digest that makes it one of its
/// own.
[[nodiscard]] std::string object_name_of(const JobSpec& spec,
                                         const Payload& payload,
                                         std::string_view digest);

}  // namespace gflow::kube
