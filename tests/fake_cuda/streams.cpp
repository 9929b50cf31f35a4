// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "process.h"

// Streams, events, and kernels, which take a microsecond for each block of their grid: a device
// runs one at a time, whoever launched it.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

constexpr std::uint64_t kBlockTime = 1000;

abi::Result wait_for(std::uint64_t time) {
  sleep_until(time);
  release_free_pools();
  return abi::kSuccess;
}

abi::Result wait_for_stream(abi::Stream stream) {
  abi::Stream const its = stream_of(stream);
  return its == nullptr ? abi::kInvalidContext : wait_for(its->done_at);
}

}  // namespace

abi::Stream stream_of(abi::Stream stream) {
  const Guard guard(Process::get().lock);
  constexpr std::uintptr_t kLastSpecial = 2;  // the legacy stream, the thread's
  if (reinterpret_cast<std::uintptr_t>(stream) > kLastSpecial) {
    return Process::get().streams.contains(stream) ? stream : nullptr;
  }
  const abi::Context context = current();
  if (context == nullptr) return nullptr;
  abi::StreamOf& its = Process::get().default_streams[context->device];
  its.device = context->device;
  return &its;
}

}  // namespace fake_cuda

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuStreamCreate);
FAKE_DECLARE(cuStreamDestroy_v2);
FAKE_DECLARE(cuStreamSynchronize);
FAKE_DECLARE(cuStreamQuery);
FAKE_DECLARE(cuStreamGetDevice);
FAKE_DECLARE(cuCtxSynchronize);
FAKE_DECLARE(cuEventCreate);
FAKE_DECLARE(cuEventDestroy_v2);
FAKE_DECLARE(cuEventRecord);
FAKE_DECLARE(cuEventQuery);
FAKE_DECLARE(cuEventSynchronize);
FAKE_DECLARE(cuEventElapsedTime);
FAKE_DECLARE(cuModuleLoadData);
FAKE_DECLARE(cuModuleGetFunction);
FAKE_DECLARE(cuModuleUnload);
FAKE_DECLARE(cuFuncSetAttribute);
FAKE_DECLARE(cuLaunchKernel);
__attribute__((visibility("default"))) abi::call::cuStreamSynchronize cuStreamSynchronize_ptsz;

abi::Result cuStreamCreate(abi::Stream* stream, unsigned int) {
  entered(__func__);
  const Guard guard(Process::get().lock);
  if (current() == nullptr) return abi::kInvalidContext;
  *stream = new abi::StreamOf{.device = current()->device};
  Process::get().streams.insert(*stream);
  return abi::kSuccess;
}

abi::Result cuStreamDestroy_v2(abi::Stream stream) {
  entered(__func__);
  const Guard guard(Process::get().lock);
  if (Process::get().streams.erase(stream) == 0) return abi::kInvalidHandle;
  delete stream;
  return abi::kSuccess;
}

abi::Result cuStreamSynchronize(abi::Stream stream) {
  entered(__func__);
  return wait_for_stream(stream);
}
abi::Result cuStreamSynchronize_ptsz(abi::Stream stream) {
  entered(__func__);
  return wait_for_stream(stream);
}

abi::Result cuStreamQuery(abi::Stream stream) {
  entered(__func__);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  return its->done_at > now() ? abi::kNotReady : abi::kSuccess;
}

abi::Result cuStreamGetDevice(abi::Stream stream, abi::Device* device) {
  entered(__func__);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  *device = static_cast<abi::Device>(its->device);
  return abi::kSuccess;
}

abi::Result cuCtxSynchronize() {
  entered(__func__);
  if (current() == nullptr) return abi::kInvalidContext;
  std::uint64_t last = 0;
  {
    const Guard guard(Process::get().lock);
    const std::size_t device = current()->device;
    last = Process::get().default_streams[device].done_at;
    for (const abi::Stream stream : Process::get().streams) {
      if (stream->device == device) last = std::max(last, stream->done_at);
    }
  }
  return wait_for(last);
}

abi::Result cuEventCreate(abi::Event* event, unsigned int) {
  entered(__func__);
  *event = new abi::EventOf;
  return abi::kSuccess;
}

abi::Result cuEventDestroy_v2(abi::Event event) {
  entered(__func__);
  delete event;
  return abi::kSuccess;
}

abi::Result cuEventRecord(abi::Event event, abi::Stream stream) {
  entered(__func__);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  event->done_at = std::max(its->done_at, now());
  return abi::kSuccess;
}

abi::Result cuEventQuery(abi::Event event) {
  entered(__func__);
  return event->done_at > now() ? abi::kNotReady : abi::kSuccess;
}

abi::Result cuEventSynchronize(abi::Event event) {
  entered(__func__);
  return wait_for(event->done_at);
}

abi::Result cuEventElapsedTime(float* milliseconds, abi::Event start, abi::Event end) {
  entered(__func__);
  *milliseconds = static_cast<float>(end->done_at - start->done_at) / 1e6F;
  return abi::kSuccess;
}

/// Any image is a module, and has a function of any name.
abi::Result cuModuleLoadData(abi::Module* module, const void*) {
  entered(__func__);
  *module = new abi::ModuleOf;
  return abi::kSuccess;
}

abi::Result cuModuleGetFunction(abi::Function* function, abi::Module module, const char*) {
  entered(__func__);
  *function = &module->function;
  return abi::kSuccess;
}

abi::Result cuModuleUnload(abi::Module module) {
  entered(__func__);
  delete module;
  return abi::kSuccess;
}

abi::Result cuFuncSetAttribute(abi::Function, int, int) {
  entered(__func__);
  return abi::kSuccess;
}

// NOLINTNEXTLINE(readability-function-size): the driver's interface
abi::Result cuLaunchKernel(abi::Function,
                           unsigned int grid_x,
                           unsigned int grid_y,
                           unsigned int grid_z,
                           unsigned int,
                           unsigned int,
                           unsigned int,
                           unsigned int,
                           abi::Stream stream,
                           void**,
                           void**) {
  entered(__func__);
  const Guard guard(Process::get().lock);
  abi::Stream const its = stream_of(stream);
  if (its == nullptr) return abi::kInvalidContext;
  const std::uint64_t length = std::uint64_t{grid_x} * grid_y * grid_z * kBlockTime;
  its->done_at = machine()->occupy(its->device, its->done_at, length);
  return abi::kSuccess;
}

}  // extern "C"
