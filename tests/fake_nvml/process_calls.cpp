// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "world.h"

// The process lists, each in three versions that differ in the size of an entry.
using namespace fake_nvml;  // NOLINT(google-build-using-namespace): the C interface is global
using gflow::devices::sim::ProcessKind;
using gflow::devices::sim::SimProcess;

namespace {

constexpr std::size_t kBytesV1 = 16;
constexpr std::size_t kBytesV2 = 24;

std::size_t bytes_v3() {
  return static_cast<std::size_t>(world().machine().nvml.process_entry_bytes);
}

struct Instances {
  std::uint32_t gpu = abi::kNoInstance;
  std::uint32_t compute = abi::kNoInstance;
};

void add_chosen(std::vector<abi::Process>& entries,
                const std::vector<SimProcess>& processes,
                ProcessKind kind,
                Instances of) {
  for (const SimProcess& one : processes) {
    if (one.kind != kind) continue;
    const auto memory = one.process.memory;
    entries.push_back({static_cast<std::uint32_t>(one.process.pid),
                       memory ? static_cast<std::uint64_t>(memory->bytes) : abi::kNotAvailable,
                       of.gpu,
                       of.compute});
  }
}

/// Those of a MIG device; of a GPU its own, and those of all its MIG devices.
std::vector<abi::Process> chosen(const Entry& entry, ProcessKind kind) {
  std::vector<abi::Process> entries;
  if (entry.slice == nullptr) add_chosen(entries, entry.device->processes, kind, {});
  for (const SimSlice& slice : entry.device->slices) {
    if (entry.slice != nullptr && entry.slice != &slice) continue;
    add_chosen(entries,
               slice.processes,
               kind,
               {static_cast<std::uint32_t>(slice.mig.gpu_instance),
                static_cast<std::uint32_t>(slice.mig.compute_instance)});
  }
  return entries;
}

/// Everything an entry has beyond pid and memory is written as well, as drivers do: the instances,
/// then 0.
void write(const abi::Process& process, char* out, std::size_t bytes) {
  std::memcpy(out, &process.pid, sizeof process.pid);
  std::memcpy(out + 8, &process.memory, sizeof process.memory);
  if (bytes > kBytesV1) {
    std::memcpy(out + kBytesV1, &process.gpu_instance, sizeof process.gpu_instance);
    std::memcpy(out + kBytesV1 + 4, &process.compute_instance, sizeof process.compute_instance);
  }
  if (bytes > kBytesV2) std::memset(out + kBytesV2, 0, bytes - kBytesV2);
}

struct Wanted {
  std::string_view call;
  ProcessKind kind;
  std::size_t bytes;
};

abi::Return list(const Wanted& wanted, abi::Handle handle, std::uint32_t* count, void* out) {
  const Entry entry = enter_any(wanted.call, handle, "processes");
  if (entry.device == nullptr) return entry.code;
  const std::vector<abi::Process> entries = chosen(entry, wanted.kind);
  const std::uint32_t room = *count;
  *count = static_cast<std::uint32_t>(entries.size());
  if (entries.size() > room) return abi::kInsufficientSize;
  char* at = static_cast<char*>(out);
  for (const abi::Process& process : entries) {
    write(process, at, wanted.bytes);
    at += wanted.bytes;
  }
  return abi::kSuccess;
}

abi::Return no_mps(std::string_view call, abi::Handle handle, std::uint32_t* count) {
  *count = 0;
  return enter_any(call, handle, "processes").code;
}

}  // namespace

extern "C" {

abi::Return nvmlDeviceGetComputeRunningProcesses(abi::Handle handle,
                                                 std::uint32_t* count,
                                                 void* out) {
  return list({__func__, ProcessKind::Compute, kBytesV1}, handle, count, out);
}
abi::Return nvmlDeviceGetComputeRunningProcesses_v2(abi::Handle handle,
                                                    std::uint32_t* count,
                                                    void* out) {
  return list({__func__, ProcessKind::Compute, kBytesV2}, handle, count, out);
}
abi::Return nvmlDeviceGetComputeRunningProcesses_v3(abi::Handle handle,
                                                    std::uint32_t* count,
                                                    void* out) {
  return list({__func__, ProcessKind::Compute, bytes_v3()}, handle, count, out);
}
abi::Return nvmlDeviceGetGraphicsRunningProcesses(abi::Handle handle,
                                                  std::uint32_t* count,
                                                  void* out) {
  return list({__func__, ProcessKind::Graphics, kBytesV1}, handle, count, out);
}
abi::Return nvmlDeviceGetGraphicsRunningProcesses_v2(abi::Handle handle,
                                                     std::uint32_t* count,
                                                     void* out) {
  return list({__func__, ProcessKind::Graphics, kBytesV2}, handle, count, out);
}
abi::Return nvmlDeviceGetGraphicsRunningProcesses_v3(abi::Handle handle,
                                                     std::uint32_t* count,
                                                     void* out) {
  return list({__func__, ProcessKind::Graphics, bytes_v3()}, handle, count, out);
}
abi::Return nvmlDeviceGetMPSComputeRunningProcesses(abi::Handle handle,
                                                    std::uint32_t* count,
                                                    void*) {
  return no_mps(__func__, handle, count);
}
abi::Return nvmlDeviceGetMPSComputeRunningProcesses_v2(abi::Handle handle,
                                                       std::uint32_t* count,
                                                       void*) {
  return no_mps(__func__, handle, count);
}
abi::Return nvmlDeviceGetMPSComputeRunningProcesses_v3(abi::Handle handle,
                                                       std::uint32_t* count,
                                                       void*) {
  return no_mps(__func__, handle, count);
}

}  // extern "C"
