// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/slices.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

#include "core/mig_profile.h"
#include "devices/nvml/device_reader.h"
#include "devices/nvml/processes.h"

namespace gflow::devices::nvml {
namespace {

constexpr std::uint32_t kMaxSlices = 64;  // of one GPU; 7 on all there are today

struct Number {
  abi::Return code = abi::kUnknown;
  std::uint32_t number = 0;
};

Number number_of(const Library& library, const char* call, abi::Handle handle) {
  Number read;
  read.code = library.call<abi::GetNumber>(call, handle, &read.number);
  return read;
}

struct Slice {
  abi::Handle gpu = nullptr;
  abi::Handle handle = nullptr;
};

/// No MIG device has the number, or not any more: others may.
bool is_none(abi::Return code) { return code == abi::kNotFound || code == abi::kInvalidArgument; }

/// As NVIDIA makes a profile of what a device has: in eighths of the GPU's memory.
std::string profile_by_attributes(const Library& library, abi::Handle slice, abi::Handle gpu) {
  abi::Attributes has{};
  abi::MemoryV1 memory{};
  if (library.call<abi::GetAttributes>("nvmlDeviceGetAttributes_v2", slice, &has) !=
          abi::kSuccess ||
      library.call<abi::GetMemoryV1>("nvmlDeviceGetMemoryInfo", gpu, &memory) != abi::kSuccess ||
      memory.total == 0) {
    return "";
  }
  const double of_gpu = static_cast<double>(has.memory_mib) * 0x1p20 * 8;
  const double eighths = std::ceil(of_gpu / static_cast<double>(memory.total));
  const double gibibytes = std::ceil(static_cast<double>(memory.total) / 0x1p30);
  std::string text =
      mig_profile_text({.compute_slices = static_cast<int>(has.compute_instance_slices),
                        .gpu_slices = static_cast<int>(has.gpu_instance_slices),
                        .gigabytes = static_cast<int>(std::lround(eighths / 8 * gibibytes))});
  return parse_mig_profile(text) ? text : "";
}

std::string profile_of(const Library& library,
                       const std::string& name,
                       abi::Handle slice,
                       abi::Handle gpu) {
  const auto found = find_mig_profile(name);
  return found ? mig_profile_text(found->profile) : profile_by_attributes(library, slice, gpu);
}

/// Nothing of one that is gone again; why it cannot be read is in the report of its GPU.
std::optional<SliceReport> read_slice(const Library& library,
                                      ProcessList& list,
                                      const Slice& slice,
                                      std::string& unread) {
  DeviceReader reader(library, slice.handle);
  reader.identity();
  const Number instance = number_of(library, "nvmlDeviceGetGpuInstanceId", slice.handle);
  const Number compute = number_of(library, "nvmlDeviceGetComputeInstanceId", slice.handle);
  for (const Number& one : {instance, compute}) {
    if (one.code == abi::kSuccess) continue;
    if (!is_none(one.code)) unread = library.error_text(one.code);
    return std::nullopt;
  }
  if (reader.report().uuid.empty()) {
    unread = "a MIG device without a UUID";
    return std::nullopt;
  }
  reader.memory();
  const Instance place{instance.number, compute.number};
  Processes processes = read_processes(library, list, {slice.handle, place});
  if (processes.code != abi::kSuccess) {
    processes = read_processes(library, list, {slice.gpu, place, true});
  }
  (void)reader.gave(processes.code, "processes");  // what is missing is in the report
  DeviceReport& read = reader.report();
  return SliceReport{.name = read.name,
                     .uuid = read.uuid,
                     .profile = profile_of(library, read.name, slice.handle, slice.gpu),
                     .gpu_instance = static_cast<int>(instance.number),
                     .compute_instance = static_cast<int>(compute.number),
                     .memory_total = read.memory_total,
                     .memory_used = read.memory_used,
                     .processes = std::move(processes.all),
                     .missing = std::move(read.missing),
                     .fatal = std::move(read.fatal)};
}

}  // namespace

void read_slices(const Library& library, ProcessList& list, abi::Handle gpu, DeviceReport& report) {
  const Number most = number_of(library, "nvmlDeviceGetMaxMigDeviceCount", gpu);
  if (most.code != abi::kSuccess) report.mig_unread = library.error_text(most.code);
  for (std::uint32_t at = 0; at < std::min(most.number, kMaxSlices); ++at) {
    Slice slice{.gpu = gpu};
    const abi::Return code =
        library.call<abi::GetSlice>("nvmlDeviceGetMigDeviceHandleByIndex", gpu, at, &slice.handle);
    if (code != abi::kSuccess) {
      if (!is_none(code)) report.mig_unread = library.error_text(code);
      continue;
    }
    auto read = read_slice(library, list, slice, report.mig_unread);
    if (read) report.slices.push_back(std::move(*read));
  }
  std::ranges::sort(report.slices, {}, [](const SliceReport& one) {
    return std::tuple(one.gpu_instance, one.compute_instance);
  });
}

}  // namespace gflow::devices::nvml
