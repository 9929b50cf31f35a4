// SPDX-License-Identifier: Apache-2.0
#include "cuda/abi.h"

// A driver whose launches do nothing: for launch_loop.cpp.
namespace abi = gflow::cuda::abi;

extern "C" {

__attribute__((visibility("default"))) abi::call::cuLaunchKernel cuLaunchKernel;

// NOLINTNEXTLINE(readability-function-size): the driver's interface
abi::Result cuLaunchKernel(abi::Function /*function*/,
                           unsigned int /*grid_x*/,
                           unsigned int /*grid_y*/,
                           unsigned int /*grid_z*/,
                           unsigned int /*block_x*/,
                           unsigned int /*block_y*/,
                           unsigned int /*block_z*/,
                           unsigned int /*shared_bytes*/,
                           abi::Stream /*stream*/,
                           void** /*parameters*/,
                           void** /*extra*/) {
  return abi::kSuccess;
}

}  // extern "C"
