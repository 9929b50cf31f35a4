// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// What 'ginfo --free --json' prints, and no route answers with: docs/format/commands.md.
namespace gflow::api {

/// GPUs that a job would get now.
struct FreeGpu {
  int index = 0;
  std::string uuid;
  std::string model;
};
struct FreeGpus {
  std::string request;  ///< as --gpus takes it
  std::string node;
  std::vector<FreeGpu> gpus;
};
[[nodiscard]] std::string write(const FreeGpus& free);

}  // namespace gflow::api
