// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvml_abi.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "machine.h"

// libnvidia-ml.so.1 of the same machine: what gflow and its jobs ask of it.
using namespace fake_cuda;  // NOLINT(google-build-using-namespace): the C interface is global
namespace nvml = gflow::cuda::nvml;

namespace {

/// An entry of the process list, as of the third version of the call.
struct Entry {
  std::uint32_t pid;
  std::uint64_t memory;
  std::uint32_t instance;
  std::uint32_t compute_instance;
};
static_assert(sizeof(Entry) == 24);

std::size_t index_of(nvml::Handle handle) { return reinterpret_cast<std::uintptr_t>(handle) - 1; }

const DeviceFacts* facts_of(nvml::Handle handle) {
  if (Machine::get() == nullptr || index_of(handle) >= Machine::get()->devices.size()) {
    return nullptr;
  }
  return &Machine::get()->devices[index_of(handle)];
}

nvml::Return put(const std::string& text, char* out, std::uint32_t size) {
  if (text.size() >= size) return nvml::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return nvml::kSuccess;
}

}  // namespace

FAKE_EXPORT nvml::Return nvmlInit_v2() {
  return Machine::get() == nullptr ? nvml::kDriverNotLoaded : nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlShutdown() { return nvml::kSuccess; }
FAKE_EXPORT const char* nvmlErrorString(nvml::Return code) {
  return code == nvml::kSuccess ? "Success" : "Unknown Error";
}
FAKE_EXPORT nvml::Return nvmlSystemGetDriverVersion(char* version, std::uint32_t size) {
  return put("580.95.05", version, size);
}
FAKE_EXPORT nvml::Return nvmlDeviceGetCount_v2(std::uint32_t* count) {
  if (Machine::get() == nullptr) return nvml::kUninitialized;
  *count = static_cast<std::uint32_t>(Machine::get()->devices.size());
  return nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetHandleByIndex_v2(std::uint32_t index, nvml::Handle* device) {
  *device = reinterpret_cast<nvml::Handle>(std::uintptr_t{index} + 1);
  return facts_of(*device) == nullptr ? nvml::kInvalidArgument : nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetName(nvml::Handle device, char* name, std::uint32_t size) {
  const DeviceFacts* facts = facts_of(device);
  return facts == nullptr ? nvml::kInvalidArgument : put(facts->name, name, size);
}
FAKE_EXPORT nvml::Return nvmlDeviceGetUUID(nvml::Handle device, char* uuid, std::uint32_t size) {
  const DeviceFacts* facts = facts_of(device);
  return facts == nullptr ? nvml::kInvalidArgument : put(facts->uuid, uuid, size);
}
FAKE_EXPORT nvml::Return nvmlDeviceGetMinorNumber(nvml::Handle device, std::uint32_t* minor) {
  if (facts_of(device) == nullptr) return nvml::kInvalidArgument;
  *minor = static_cast<std::uint32_t>(index_of(device));
  return nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetPciInfo_v3(nvml::Handle device, nvml::PciInfo* pci) {
  if (facts_of(device) == nullptr) return nvml::kInvalidArgument;
  *pci = {};
  pci->bus = static_cast<std::uint32_t>(index_of(device)) + 1;
  (void)std::snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", pci->bus);
  return nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetMemoryInfo(nvml::Handle device, nvml::MemoryV1* memory) {
  const DeviceFacts* facts = facts_of(device);
  if (facts == nullptr) return nvml::kInvalidArgument;
  const std::uint64_t used = Machine::get()->used(index_of(device));
  *memory = {facts->bytes, facts->bytes - used, used};
  return nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetMemoryInfo_v2(nvml::Handle device, nvml::MemoryV2* memory) {
  const DeviceFacts* facts = facts_of(device);
  if (facts == nullptr) return nvml::kInvalidArgument;
  if (memory->version != nvml::kMemoryV2) return nvml::kArgumentVersionMismatch;
  const std::uint64_t used = Machine::get()->used(index_of(device));
  *memory = {nvml::kMemoryV2, facts->bytes, 0, facts->bytes - used, used};
  return nvml::kSuccess;
}
/// Of the time since this process asked last: whatever worked meanwhile is seen.
FAKE_EXPORT nvml::Return nvmlDeviceGetUtilizationRates(nvml::Handle device,
                                                       nvml::Utilization* use) {
  struct Seen {
    std::uint64_t at = now();
    Work worked = 0;
  };
  static std::array<Seen, kMaxDevices> last;
  if (facts_of(device) == nullptr) return nvml::kInvalidArgument;
  const Seen seen{.worked = Machine::get()->worked(index_of(device))};
  Seen& before = last.at(index_of(device));
  const std::uint64_t time = std::max<std::uint64_t>(seen.at - before.at, 1);
  const std::uint64_t percent = (100 * (seen.worked - before.worked) + time - 1) / time;
  *use = {static_cast<std::uint32_t>(std::min<std::uint64_t>(percent, 100)), 0};
  before = seen;
  return nvml::kSuccess;
}
FAKE_EXPORT nvml::Return nvmlDeviceGetComputeRunningProcesses_v3(nvml::Handle device,
                                                                 std::uint32_t* count,
                                                                 void* entries) {
  if (facts_of(device) == nullptr) return nvml::kInvalidArgument;
  const auto processes = Machine::get()->processes(index_of(device));
  const std::uint32_t room = *count;
  *count = static_cast<std::uint32_t>(processes.size());
  if (processes.size() > room) return nvml::kInsufficientSize;
  auto* out = static_cast<Entry*>(entries);
  for (const auto& [pid, bytes] : processes) {
    *out++ = {static_cast<std::uint32_t>(pid), bytes, ~0U, ~0U};
  }
  return nvml::kSuccess;
}
