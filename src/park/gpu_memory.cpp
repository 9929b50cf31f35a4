// SPDX-License-Identifier: Apache-2.0
#include "park/gpu_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "devices/nvml/process_list.h"
#include "os/user.h"

namespace gflow::park {
namespace {

namespace nvml = cuda::nvml;

std::unexpected<Error> failed(const devices::nvml::Library& library,
                              nvml::Return code,
                              std::string_view doing) {
  return fail(Code::Failure, fmt::format("NVML cannot {}: {}", doing, library.error_text(code)));
}

}  // namespace

Result<GpuMemory> GpuMemory::open() {
  GpuMemory made(
      GF_TRY(devices::nvml::Library::open(os::environment("GFLOW_NVML_LIBRARY").value_or(""))));
  const auto& library = made.library_;
  std::uint32_t count = 0;
  auto code = library.call<nvml::Init>("nvmlInit_v2");
  if (code == nvml::kSuccess) code = library.call<nvml::GetCount>("nvmlDeviceGetCount_v2", &count);
  if (code != nvml::kSuccess) return failed(library, code, "be used");
  for (std::uint32_t index = 0; index < count; ++index) {
    nvml::Handle gpu = nullptr;
    std::array<char, nvml::kUuidSize> uuid{};
    code = library.call<nvml::GetHandle>("nvmlDeviceGetHandleByIndex_v2", index, &gpu);
    // One that is lost has nobody's memory.
    if (code == nvml::kGpuIsLost) continue;
    if (code == nvml::kSuccess) {
      const auto size = static_cast<std::uint32_t>(uuid.size());
      code = library.call<nvml::GetText>("nvmlDeviceGetUUID", gpu, uuid.data(), size);
    }
    if (code != nvml::kSuccess) return failed(library, code, "tell which GPUs there are");
    made.gpus_[uuid.data()] = gpu;
  }
  return made;
}

Result<ByGpu> GpuMemory::used_by(const std::vector<ProcessFacts>& processes) const {
  ByGpu used;
  for (const auto& [uuid, gpu] : gpus_) {
    devices::nvml::ProcessList list;
    const auto there = list.read(library_, gpu, "nvmlDeviceGetComputeRunningProcesses");
    if (there.code != nvml::kSuccess) {
      return failed(library_, there.code, "tell which processes are on GPU " + printable(uuid));
    }
    for (const nvml::Process& one : there.processes) {
      const auto is_it = [&one](const ProcessFacts& process) {
        return static_cast<std::uint32_t>(process.pid) == one.pid;
      };
      if (std::ranges::none_of(processes, is_it)) continue;
      const bool is_told = one.memory != nvml::kNotAvailable;
      used[uuid] += Memory{is_told ? static_cast<std::int64_t>(one.memory) : 0};
    }
  }
  return used;
}

Result<void> GpuMemory::check_room(const ByGpu& needed) const {
  for (const auto& [uuid, wanted] : needed) {
    const auto gpu = gpus_.find(uuid);
    if (gpu == gpus_.end()) {
      return fail(Code::NotFound, fmt::format("there is no GPU {}", printable(uuid)));
    }
    nvml::MemoryV1 memory{};
    const auto code =
        library_.call<nvml::GetMemoryV1>("nvmlDeviceGetMemoryInfo", gpu->second, &memory);
    if (code != nvml::kSuccess) {
      return failed(library_, code, "tell what is free of GPU " + printable(uuid));
    }
    const Memory free{static_cast<std::int64_t>(memory.free)};
    if (free >= wanted) continue;
    return fail(Code::Exhausted,
                fmt::format("GPU {} has {} free of the {} that are to come back",
                            printable(uuid),
                            memory_text(free, wanted),
                            memory_text(wanted, free)));
  }
  return {};
}

Result<GpuMemory::Kind> GpuMemory::kind_of(const std::string& uuid) const {
  const auto gpu = gpus_.find(uuid);
  if (gpu == gpus_.end()) {
    return fail(Code::NotFound, fmt::format("there is no GPU {}", printable(uuid)));
  }
  std::array<char, nvml::kNameSize> name{};
  auto code = library_.call<nvml::GetText>(
      "nvmlDeviceGetName", gpu->second, name.data(), static_cast<std::uint32_t>(name.size()));
  nvml::MemoryV1 memory{};
  if (code == nvml::kSuccess) {
    code = library_.call<nvml::GetMemoryV1>("nvmlDeviceGetMemoryInfo", gpu->second, &memory);
  }
  if (code != nvml::kSuccess)
    return failed(library_, code, "tell what GPU " + printable(uuid) + " is");
  return Kind{name.data(), Memory{static_cast<std::int64_t>(memory.total)}};
}

Result<void> GpuMemory::check_alike(const std::string& one, const std::string& other) const {
  const Kind before = GF_TRY(kind_of(one));
  const Kind after = GF_TRY(kind_of(other));
  if (before.model == after.model && before.memory == after.memory) return {};
  return fail(Code::Infeasible,
              fmt::format("GPU {} is {} with {}, and GPU {} is {} with {}",
                          printable(one),
                          printable(before.model),
                          memory_text(before.memory, after.memory),
                          printable(other),
                          printable(after.model),
                          memory_text(after.memory, before.memory)));
}

}  // namespace gflow::park
