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

std::optional<std::uint32_t> number_of(const Library& library,
                                       const char* call,
                                       abi::Handle handle) {
  std::uint32_t number = 0;
  const abi::Return code = library.call<abi::GetNumber>(call, handle, &number);
  return code == abi::kSuccess ? std::optional(number) : std::nullopt;
}

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
  return mig_profile_text({.compute_slices = static_cast<int>(has.compute_instance_slices),
                           .gpu_slices = static_cast<int>(has.gpu_instance_slices),
                           .gigabytes = static_cast<int>(std::lround(eighths / 8 * gibibytes))});
}

std::string profile_of(const Library& library,
                       const std::string& name,
                       abi::Handle slice,
                       abi::Handle gpu) {
  const auto found = find_mig_profile(name);
  return found ? mig_profile_text(found->profile) : profile_by_attributes(library, slice, gpu);
}

/// Nothing of one that is gone again.
std::optional<SliceReport> read_slice(const Library& library,
                                      ProcessList& list,
                                      abi::Handle slice,
                                      abi::Handle gpu) {
  DeviceReader reader(library, slice);
  reader.identity();
  const auto instance = number_of(library, "nvmlDeviceGetGpuInstanceId", slice);
  const auto compute = number_of(library, "nvmlDeviceGetComputeInstanceId", slice);
  if (reader.report().uuid.empty() || !instance || !compute) return std::nullopt;
  reader.memory();
  const Instance place{*instance, *compute};
  Processes processes = read_processes(library, list, {slice, place});
  if (processes.code != abi::kSuccess) {
    processes = read_processes(library, list, {gpu, place, true});
  }
  (void)reader.gave(processes.code, "processes");  // what is missing is in the report
  DeviceReport& read = reader.report();
  return SliceReport{.name = read.name,
                     .uuid = read.uuid,
                     .profile = profile_of(library, read.name, slice, gpu),
                     .gpu_instance = static_cast<int>(*instance),
                     .compute_instance = static_cast<int>(*compute),
                     .memory_total = read.memory_total,
                     .memory_used = read.memory_used,
                     .processes = std::move(processes.all),
                     .missing = std::move(read.missing)};
}

}  // namespace

std::vector<SliceReport> read_slices(const Library& library, ProcessList& list, abi::Handle gpu) {
  std::vector<SliceReport> slices;
  const auto most = number_of(library, "nvmlDeviceGetMaxMigDeviceCount", gpu);
  for (std::uint32_t at = 0; at < std::min(most.value_or(0), kMaxSlices); ++at) {
    abi::Handle slice = nullptr;
    const abi::Return code =
        library.call<abi::GetSlice>("nvmlDeviceGetMigDeviceHandleByIndex", gpu, at, &slice);
    if (code != abi::kSuccess) continue;  // a number that no device has, as after one is destroyed
    if (auto read = read_slice(library, list, slice, gpu)) slices.push_back(std::move(*read));
  }
  std::ranges::sort(slices, {}, [](const SliceReport& one) {
    return std::tuple(one.gpu_instance, one.compute_instance);
  });
  return slices;
}

}  // namespace gflow::devices::nvml
