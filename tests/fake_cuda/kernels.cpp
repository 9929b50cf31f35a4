// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "process.h"

// Modules, and kernels, which take a microsecond for each block of their grid. One without blocks
// ends when it is told to (fakeCudaTell), as one does that waits for another; one of the grid 0, N,
// M when M of these N have begun, each of another process or device, and then as many microseconds
// later as its blocks have threads.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

constexpr Work kBlockTime = 1000;

std::uint64_t number_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// Those of the last cuLaunchKernel, in their order.
std::array<std::uint64_t, 11> arguments;

abi::Result meet(abi::Stream stream, Meeting meeting, Work length) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  its->place = machine()->add_meeting(its->device, meeting, length);
  return abi::kSuccess;
}

abi::Result launch(abi::Stream stream, std::uint64_t x, std::uint64_t y, std::uint64_t z) {
  const Work length = x * y * z * kBlockTime;
  return put(stream, length == 0 ? kUntilTold : length);
}

}  // namespace

abi::Result put(abi::Stream stream, Work length) {
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  if (its->captures != nullptr) {
    its->captures->length += length;
  } else {
    its->place = machine()->add(its->device, length);
  }
  return abi::kSuccess;
}

}  // namespace fake_cuda

/// Not of the driver: lets the kernel end that waits for it.
FAKE_EXPORT void fakeCudaTell(abi::Device device) {
  Machine::get()->tell(static_cast<std::size_t>(device));
}
/// Not of the driver: one argument of the last cuLaunchKernel.
FAKE_EXPORT std::uint64_t fakeCudaArgument(int place) {
  return arguments[static_cast<std::size_t>(place)];
}
/// Not of the driver: nanoseconds that the device has worked for this process.
FAKE_EXPORT std::uint64_t fakeCudaBusy(abi::Device device) {
  return Machine::get()->worked_for_own(static_cast<std::size_t>(device));
}
/// Not of the driver: nanoseconds that a GPU has worked while processes of several accounts had
/// work.
FAKE_EXPORT std::uint64_t fakeCudaContested(abi::Device gpu) {
  return Machine::get()->contested(static_cast<std::size_t>(gpu));
}
/// Not of the driver: the last round of a circle of kernels, as who asks first says.
FAKE_EXPORT std::uint32_t fakeCudaLastRound(std::uint32_t circle, std::uint32_t proposed) {
  return Machine::get()->last_round(circle, proposed);
}

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuModuleLoadData);
FAKE_DECLARE(cuModuleGetFunction);
FAKE_DECLARE(cuModuleUnload);
FAKE_DECLARE(cuFuncSetAttribute);
FAKE_DECLARE(cuLaunch);
FAKE_DECLARE(cuLaunchGrid);
FAKE_DECLARE(cuLaunchGridAsync);
FAKE_DECLARE(cuLaunchKernel);
FAKE_DECLARE(cuLaunchKernelEx);
FAKE_DECLARE(cuLaunchCooperativeKernel);
#undef FAKE_DECLARE
#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name##_ptsz
FAKE_DECLARE(cuLaunchKernel);
FAKE_DECLARE(cuLaunchKernelEx);
FAKE_DECLARE(cuLaunchCooperativeKernel);

/// Any image is a module, and has a function of any name.
abi::Result cuModuleLoadData(abi::Module* module, const void*) {
  const Call call(__func__);
  *module = new abi::ModuleOf;
  return abi::kSuccess;
}

abi::Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char*) {
  const Call call(__func__);
  *function = &module->function;
  return abi::kSuccess;
}

abi::Result cuModuleUnload(abi::Module module) {
  const Call call(__func__);
  delete module;
  return abi::kSuccess;
}

abi::Result cuFuncSetAttribute(abi::Function, int, int) {
  const Call call(__func__);
  return abi::kSuccess;
}

abi::Result cuLaunch(abi::Function) {
  const Call call(__func__);
  return launch(nullptr, 1, 1, 1);
}

abi::Result cuLaunchGrid(abi::Function, int width, int height) {
  const Call call(__func__);
  return launch(nullptr, static_cast<unsigned>(width), static_cast<unsigned>(height), 1);
}

abi::Result cuLaunchGridAsync(abi::Function, int width, int height, abi::Stream stream) {
  const Call call(__func__);
  return launch(stream, static_cast<unsigned>(width), static_cast<unsigned>(height), 1);
}

// NOLINTBEGIN(readability-function-size): the driver's interface
#define FAKE_LAUNCH(name)                                 \
  abi::Result name(abi::Function function,                \
                   unsigned int x,                        \
                   unsigned int y,                        \
                   unsigned int z,                        \
                   unsigned int block_x,                  \
                   unsigned int block_y,                  \
                   unsigned int block_z,                  \
                   unsigned int shared_bytes,             \
                   abi::Stream stream,                    \
                   void** parameters,                     \
                   void** extra) {                        \
    const Call call(__func__);                            \
    const Guard guard(Process::get().lock);               \
    arguments = {number_of(function),                     \
                 x,                                       \
                 y,                                       \
                 z,                                       \
                 block_x,                                 \
                 block_y,                                 \
                 block_z,                                 \
                 shared_bytes,                            \
                 number_of(stream),                       \
                 number_of(parameters),                   \
                 number_of(extra)};                       \
    if (x == 0 && y > 1) {                                \
      const Meeting meeting{0, 0, y, z};                  \
      return meet(stream, meeting, block_x * kBlockTime); \
    }                                                     \
    return launch(stream, x, y, z);                       \
  }
FAKE_LAUNCH(cuLaunchKernel)
FAKE_LAUNCH(cuLaunchKernel_ptsz)
#undef FAKE_LAUNCH

#define FAKE_LAUNCH(name)              \
  abi::Result name(abi::Function,      \
                   unsigned int x,     \
                   unsigned int y,     \
                   unsigned int z,     \
                   unsigned int,       \
                   unsigned int,       \
                   unsigned int,       \
                   unsigned int,       \
                   abi::Stream stream, \
                   void**) {           \
    const Call call(__func__);         \
    return launch(stream, x, y, z);    \
  }
FAKE_LAUNCH(cuLaunchCooperativeKernel)
FAKE_LAUNCH(cuLaunchCooperativeKernel_ptsz)
#undef FAKE_LAUNCH
// NOLINTEND(readability-function-size)

abi::Result cuLaunchKernelEx(const abi::LaunchConfig* config, abi::Function, void**, void**) {
  const Call call(__func__);
  return launch(config->stream, config->grid_x, config->grid_y, config->grid_z);
}
abi::Result cuLaunchKernelEx_ptsz(const abi::LaunchConfig* config, abi::Function, void**, void**) {
  const Call call(__func__);
  return launch(config->stream, config->grid_x, config->grid_y, config->grid_z);
}

}  // extern "C"
