// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/gpu_request.h"
#include "core/job.h"

namespace gflow::api {

/// What a request for GPUs means: the answer of `gflow spec`.
struct GpuSpecView {
  std::string text;       ///< as it was written
  std::string canonical;  ///< the one way to write it
  std::string words;      ///< a sentence
  Request request;
  std::string resource_name;  ///< "nvidia.com/gpu"
  /// The way of using a GPU: "count", "virtual", "time_slice"; empty for none.
  std::optional<std::string> load_mode;
};
[[nodiscard]] GpuSpecView gpu_spec_view(std::string text,
                                        const Request& request,
                                        const GpuResources& resources);

/// A document of kind "GpuSpec".
[[nodiscard]] std::string write(const GpuSpecView& view);

}  // namespace gflow::api
