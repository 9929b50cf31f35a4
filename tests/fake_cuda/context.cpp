// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>

#include "process.h"

// Devices and contexts.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global

namespace fake_cuda {
namespace {

std::atomic<bool> is_initialized = false;
thread_local abi::Context current_context = nullptr;
thread_local std::vector<abi::Context> contexts_below;

bool is_device(abi::Device device) {
  return machine() != nullptr && device >= 0 &&
         static_cast<std::size_t>(device) < machine()->devices.size();
}

/// The driver's own memory, once for each device that a process uses.
bool take_context_memory(std::size_t device) {
  bool& has = Process::get().has_context_memory[device];
  if (!has) has = machine()->take(device, machine()->context_bytes);
  return has;
}

abi::Result make(abi::Context* context, std::size_t device) {
  if (!take_context_memory(device)) return abi::kOutOfMemory;
  *context = new abi::ContextOf{device};
  Process::get().contexts.insert(*context);
  return abi::kSuccess;
}

void empty(abi::Context context) {
  std::erase_if(Process::get().blocks, [&](const auto& entry) {
    if (entry.second.context != context) return false;
    machine()->give_back(entry.second.device, entry.second.bytes);
    return true;
  });
}

abi::Result destroy(abi::Context context) {
  if (Process::get().contexts.erase(context) == 0) return abi::kInvalidContext;
  empty(context);
  if (current_context == context) current_context = nullptr;
  delete context;
  return abi::kSuccess;
}

abi::Result release_primary(abi::Device device) {
  if (!is_device(device)) return abi::kInvalidDevice;
  const Guard guard(Process::get().lock);
  Process::Primary& its = Process::get().primary[static_cast<std::size_t>(device)];
  if (its.retained == 0) return abi::kInvalidContext;
  if (--its.retained > 0) return abi::kSuccess;
  const abi::Result result = destroy(its.context);
  its.context = nullptr;
  return result;
}

abi::Result reset_primary(abi::Device device) {
  if (!is_device(device)) return abi::kInvalidDevice;
  const Guard guard(Process::get().lock);
  Process::Primary& its = Process::get().primary[static_cast<std::size_t>(device)];
  if (its.context != nullptr) empty(its.context);
  return abi::kSuccess;
}

abi::Result uuid_of(abi::Uuid* uuid, abi::Device device) {
  if (!is_device(device)) return abi::kInvalidDevice;
  const std::size_t gpu = machine()->gpu_of(static_cast<std::size_t>(device));
  *uuid = uuid_in(machine()->devices[gpu].uuid);
  return abi::kSuccess;
}

}  // namespace

Process& Process::get() {
  static auto* const process = new Process;
  return *process;
}

abi::DevicePtr Process::new_address(std::uint64_t bytes) {
  const abi::DevicePtr address = next_address;
  next_address += (bytes + 2 * kMiB) / kMiB * kMiB;
  return address;
}

Machine* machine() { return is_initialized ? Machine::get() : nullptr; }

abi::Context current() {
  const Guard guard(Process::get().lock);
  return Process::get().contexts.contains(current_context) ? current_context : nullptr;
}

}  // namespace fake_cuda

/// Not of the driver: how often this process has called an exported function.
FAKE_EXPORT int fakeCudaCalls(const char* function) { return calls_of(function); }
/// Not of the driver: what all processes have of a device, and the most they ever had.
FAKE_EXPORT void fakeCudaUsed(abi::Device device, std::uint64_t* used, std::uint64_t* peak) {
  *used = Machine::get()->used(static_cast<std::size_t>(device));
  *peak = Machine::get()->peak(static_cast<std::size_t>(device));
}

extern "C" {

#define FAKE_DECLARE(name) __attribute__((visibility("default"))) abi::call::name name
FAKE_DECLARE(cuInit);
FAKE_DECLARE(cuDriverGetVersion);
FAKE_DECLARE(cuDeviceGetCount);
FAKE_DECLARE(cuDeviceGet);
FAKE_DECLARE(cuDeviceGetName);
FAKE_DECLARE(cuDeviceGetUuid);
FAKE_DECLARE(cuDeviceGetUuid_v2);
FAKE_DECLARE(cuDeviceTotalMem_v2);
FAKE_DECLARE(cuCtxCreate_v2);
FAKE_DECLARE(cuCtxDestroy_v2);
FAKE_DECLARE(cuCtxSetCurrent);
FAKE_DECLARE(cuCtxGetCurrent);
FAKE_DECLARE(cuCtxGetDevice);
FAKE_DECLARE(cuCtxPushCurrent_v2);
FAKE_DECLARE(cuCtxPopCurrent_v2);
FAKE_DECLARE(cuDevicePrimaryCtxRetain);
FAKE_DECLARE(cuDevicePrimaryCtxRelease_v2);
FAKE_DECLARE(cuDevicePrimaryCtxReset_v2);
FAKE_DECLARE(cuDevicePrimaryCtxGetState);

abi::Result cuInit(unsigned int) {
  const Call call(__func__);
  if (Machine::get() == nullptr) return abi::kNotInitialized;
  is_initialized = true;
  start_serving();
  return abi::kSuccess;
}

abi::Result cuDriverGetVersion(int* version) {
  const Call call(__func__);
  if (Machine::get() == nullptr) return abi::kNotInitialized;
  *version = Machine::get()->driver_version;
  return abi::kSuccess;
}

abi::Result cuDeviceGetCount(int* count) {
  const Call call(__func__);
  if (machine() == nullptr) return abi::kNotInitialized;
  *count = static_cast<int>(machine()->devices.size());
  return abi::kSuccess;
}

abi::Result cuDeviceGet(abi::Device* device, int ordinal) {
  const Call call(__func__);
  if (machine() == nullptr) return abi::kNotInitialized;
  if (!is_device(ordinal)) return abi::kInvalidDevice;
  *device = ordinal;
  return abi::kSuccess;
}

abi::Result cuDeviceGetName(char* name, int size, abi::Device device) {
  const Call call(__func__);
  if (!is_device(device)) return abi::kInvalidDevice;
  const std::string& text = machine()->devices[static_cast<std::size_t>(device)].name;
  (void)std::snprintf(name, static_cast<std::size_t>(size), "%s", text.c_str());
  return abi::kSuccess;
}

abi::Result cuDeviceGetUuid(abi::Uuid* uuid, abi::Device device) {
  const Call call(__func__);
  return uuid_of(uuid, device);
}

abi::Result cuDeviceGetUuid_v2(abi::Uuid* uuid, abi::Device device) {
  const Call call(__func__);
  return uuid_of(uuid, device);
}

abi::Result cuDeviceTotalMem_v2(std::size_t* bytes, abi::Device device) {
  const Call call(__func__);
  if (!is_device(device)) return abi::kInvalidDevice;
  *bytes = machine()->devices[static_cast<std::size_t>(device)].bytes;
  return abi::kSuccess;
}

abi::Result cuCtxCreate_v2(abi::Context* context, unsigned int, abi::Device device) {
  const Call call(__func__);
  if (!is_device(device)) return abi::kInvalidDevice;
  const Guard guard(Process::get().lock);
  const abi::Result result = make(context, static_cast<std::size_t>(device));
  if (result == abi::kSuccess) current_context = *context;
  return result;
}

abi::Result cuCtxDestroy_v2(abi::Context context) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  return destroy(context);
}

abi::Result cuCtxSetCurrent(abi::Context context) {
  const Call call(__func__);
  const Guard guard(Process::get().lock);
  if (context != nullptr && !Process::get().contexts.contains(context)) return abi::kInvalidContext;
  current_context = context;
  return abi::kSuccess;
}

abi::Result cuCtxGetCurrent(abi::Context* context) {
  const Call call(__func__);
  *context = current();
  return abi::kSuccess;
}

abi::Result cuCtxGetDevice(abi::Device* device) {
  const Call call(__func__);
  if (current() == nullptr) return abi::kInvalidContext;
  *device = static_cast<abi::Device>(current()->device);
  return abi::kSuccess;
}

abi::Result cuCtxPushCurrent_v2(abi::Context context) {
  const Call call(__func__);
  contexts_below.push_back(current());
  return cuCtxSetCurrent(context);
}

abi::Result cuCtxPopCurrent_v2(abi::Context* context) {
  const Call call(__func__);
  if (context != nullptr) *context = current();
  if (current() == nullptr) return abi::kInvalidContext;
  abi::Context const below = contexts_below.empty() ? nullptr : contexts_below.back();
  if (!contexts_below.empty()) contexts_below.pop_back();
  return cuCtxSetCurrent(below);
}

abi::Result cuDevicePrimaryCtxRetain(abi::Context* context, abi::Device device) {
  const Call call(__func__);
  if (!is_device(device)) return abi::kInvalidDevice;
  const Guard guard(Process::get().lock);
  const auto index = static_cast<std::size_t>(device);
  Process::Primary& its = Process::get().primary[index];
  if (its.context == nullptr) {
    const abi::Result made = make(&its.context, index);
    if (made != abi::kSuccess) return made;
  }
  ++its.retained;
  *context = its.context;
  return abi::kSuccess;
}

abi::Result cuDevicePrimaryCtxRelease_v2(abi::Device device) {
  const Call call(__func__);
  return release_primary(device);
}

abi::Result cuDevicePrimaryCtxReset_v2(abi::Device device) {
  const Call call(__func__);
  return reset_primary(device);
}

abi::Result cuDevicePrimaryCtxGetState(abi::Device device, unsigned int* flags, int* active) {
  const Call call(__func__);
  if (!is_device(device)) return abi::kInvalidDevice;
  const Guard guard(Process::get().lock);
  *flags = 0;
  *active = Process::get().primary[static_cast<std::size_t>(device)].context != nullptr ? 1 : 0;
  return abi::kSuccess;
}

}  // extern "C"
