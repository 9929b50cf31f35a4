// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "client/commands.h"
#include "cuda/nvml_abi.h"

namespace client {
namespace {

namespace nvml = gflow::cuda::nvml;

/// "NAME=FILE:SYMBOL" of each function: what a caller really calls.
std::string where(const Functions& cu) {
  std::string text;
  const auto add = [&text](const char* name, const void* function) {
    Dl_info facts{};
    if (function == nullptr || ::dladdr(function, &facts) == 0) return;
    const std::string file = facts.dli_fname;
    text.append(" ").append(name).append("=").append(file.substr(file.rfind('/') + 1));
    if (facts.dli_sname != nullptr) text.append(":").append(facts.dli_sname);
  };
#define CLIENT_ADD(base, symbol) add(#base, reinterpret_cast<const void*>(cu.base));
  CLIENT_FUNCTIONS(CLIENT_ADD)
  CLIENT_STREAM_FUNCTIONS(CLIENT_ADD)
#undef CLIENT_ADD
  return "0" + text;
}

/// As nvidia-smi and pynvml: "TOTAL FREE USED" by each version of the call.
std::string nvml_memory(const Request& asked) {
  void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
  if (library == nullptr) return "no libnvidia-ml.so.1";
  (void)reinterpret_cast<nvml::Init>(::dlsym(library, "nvmlInit_v2"))();
  nvml::Handle device = nullptr;
  (void)reinterpret_cast<nvml::GetHandle>(::dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(
      static_cast<std::uint32_t>(asked.number(0)), &device);
  nvml::MemoryV1 first{};
  (void)reinterpret_cast<nvml::GetMemoryV1>(::dlsym(library, "nvmlDeviceGetMemoryInfo"))(device,
                                                                                         &first);
  nvml::MemoryV2 second{.version = nvml::kMemoryV2};
  (void)reinterpret_cast<nvml::GetMemoryV2>(::dlsym(library, "nvmlDeviceGetMemoryInfo_v2"))(
      device, &second);
  return said(
      abi::kSuccess, first.total, first.free, first.used, second.total, second.free, second.used);
}

/// What a library finds in all libraries that is loaded for this program alone.
std::string plugin(const Request& asked) {
  void* const library = ::dlopen(asked.name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return ::dlerror();
  auto* finds = reinterpret_cast<bool (*)(const char*)>(::dlsym(library, "plugin_finds"));
  std::string found = "0";
  for (const char* name : {"plugin_own", "plugin_needed", "no_such_function"}) {
    found.append(finds(name) ? " 1" : " 0");
  }
  return found;
}

}  // namespace

void add_questions(Commands& commands, const Functions& cu) {
  commands["info"] = [&](const Request&) {
    std::size_t free = 0;
    std::size_t total = 0;
    const abi::Result result = cu.cuMemGetInfo(&free, &total);
    return said(result, free, total);
  };
  commands["total"] = [&](const Request& asked) {
    return made<std::size_t>(
        [&](auto* out) { return cu.cuDeviceTotalMem(out, static_cast<int>(asked.number(0))); });
  };
  commands["nvml"] = nvml_memory;
  commands["where"] = [&](const Request&) { return where(cu); };
  commands["plugin"] = plugin;
  commands["used"] = [](const Request& asked) {
    std::uint64_t bytes = 0;
    std::uint64_t peak = 0;
    of_fake<void(abi::Device, std::uint64_t*, std::uint64_t*)>("fakeCudaUsed")(
        static_cast<int>(asked.number(0)), &bytes, &peak);
    return said(abi::kSuccess, bytes, peak);
  };
  commands["calls"] = [](const Request& asked) {
    return said(abi::kSuccess, of_fake<int(const char*)>("fakeCudaCalls")(asked.name.c_str()));
  };
}

}  // namespace client
