// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/abi.h"
#include "cuda/nvml_abi.h"

// A program that uses the driver: cuda_client LOOKUP [ptsz] reads a command a line and answers each
// with a line, "0 ..." or the driver's error. LOOKUP is how it gets at the functions.
namespace abi = gflow::cuda::abi;
namespace nvml = gflow::cuda::nvml;

#define CLIENT_FUNCTIONS(X)                                   \
  X(cuInit, cuInit)                                           \
  X(cuDeviceGetCount, cuDeviceGetCount)                       \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2)                    \
  X(cuCtxCreate, cuCtxCreate_v2)                              \
  X(cuCtxDestroy, cuCtxDestroy_v2)                            \
  X(cuCtxSetCurrent, cuCtxSetCurrent)                         \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2)  \
  X(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2)      \
  X(cuMemGetInfo, cuMemGetInfo_v2)                            \
  X(cuMemAlloc, cuMemAlloc_v2)                                \
  X(cuMemAllocPitch, cuMemAllocPitch_v2)                      \
  X(cuMemAllocManaged, cuMemAllocManaged)                     \
  X(cuMemFree, cuMemFree_v2)                                  \
  X(cuMemHostAlloc, cuMemHostAlloc)                           \
  X(cuMemPoolTrimTo, cuMemPoolTrimTo)                         \
  X(cuMemPoolCreate, cuMemPoolCreate)                         \
  X(cuMemPoolDestroy, cuMemPoolDestroy)                       \
  X(cuMemPoolSetAttribute, cuMemPoolSetAttribute)             \
  X(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool)     \
  X(cuMemCreate, cuMemCreate)                                 \
  X(cuMemRelease, cuMemRelease)                               \
  X(cuMemRetainAllocationHandle, cuMemRetainAllocationHandle) \
  X(cuMemAddressReserve, cuMemAddressReserve)                 \
  X(cuMemMap, cuMemMap)                                       \
  X(cuMemUnmap, cuMemUnmap)                                   \
  X(cuArrayCreate, cuArrayCreate_v2)                          \
  X(cuArray3DCreate, cuArray3DCreate_v2)                      \
  X(cuArrayDestroy, cuArrayDestroy)                           \
  X(cuMipmappedArrayCreate, cuMipmappedArrayCreate)           \
  X(cuMipmappedArrayDestroy, cuMipmappedArrayDestroy)         \
  X(cuCtxSynchronize, cuCtxSynchronize)                       \
  X(cuLaunchKernel, cuLaunchKernel)
#define CLIENT_STREAM_FUNCTIONS(X)                    \
  X(cuMemAllocAsync, cuMemAllocAsync)                 \
  X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync) \
  X(cuMemFreeAsync, cuMemFreeAsync)                   \
  X(cuStreamSynchronize, cuStreamSynchronize)

#ifdef CLIENT_LINKED
extern "C" {
#define CLIENT_DECLARE(base, symbol) abi::call::symbol symbol;
CLIENT_FUNCTIONS(CLIENT_DECLARE)
CLIENT_STREAM_FUNCTIONS(CLIENT_DECLARE)
#undef CLIENT_DECLARE
}
#endif
#if defined(__x86_64__)
extern "C" void* dlsym_of_old_programs(void* handle, const char* name);
__asm__(".symver dlsym_of_old_programs, dlsym@GLIBC_2.2.5");
#endif

namespace {

struct Functions {
#define CLIENT_MEMBER(base, symbol) abi::call::symbol* base = nullptr;
  CLIENT_FUNCTIONS(CLIENT_MEMBER)
  CLIENT_STREAM_FUNCTIONS(CLIENT_MEMBER)
#undef CLIENT_MEMBER
};

void* driver_handle(int flags) {
  void* const handle = ::dlopen("libcuda.so.1", flags);
  if (handle == nullptr) {
    (void)std::fprintf(stderr, "%s\n", ::dlerror());
    ::exit(1);
  }
  return handle;
}

#ifndef CLIENT_LINKED
using Lookup = std::function<void*(const char* base, const char* symbol)>;
constexpr int kVersion = 12090;

/// Through cuGetProcAddress_v2 as the runtime does: it looks that up itself first.
Lookup by_proc_address(std::uint64_t flags) {
  auto* first = reinterpret_cast<abi::call::cuGetProcAddress_v2*>(
      ::dlsym(driver_handle(RTLD_NOW), "cuGetProcAddress_v2"));
  void* own = nullptr;
  (void)first("cuGetProcAddress", &own, kVersion, flags, nullptr);
  auto* ask = reinterpret_cast<abi::call::cuGetProcAddress_v2*>(own);
  return [ask, flags](const char* base, const char*) {
    void* found = nullptr;
    abi::ProcAddressStatus status = 0;
    (void)ask(base, &found, kVersion, flags, &status);
    return found;
  };
}

Lookup by_first_proc_address(std::uint64_t flags) {
  auto* ask = reinterpret_cast<abi::call::cuGetProcAddress*>(
      ::dlsym(driver_handle(RTLD_NOW), "cuGetProcAddress"));
  return [ask, flags](const char* base, const char*) {
    void* found = nullptr;
    (void)ask(base, &found, 11080, flags);
    return found;
  };
}

Lookup by_dlsym(void* handle) {
  return [handle](const char*, const char* symbol) { return ::dlsym(handle, symbol); };
}

Lookup lookup_of(const std::string& how, bool thread_stream) {
  const std::uint64_t flags = thread_stream ? abi::kProcPerThreadStream : 0;
  if (how == "dlsym") return by_dlsym(driver_handle(RTLD_NOW));
  if (how == "deepbind") return by_dlsym(driver_handle(RTLD_NOW | RTLD_DEEPBIND));
  if (how == "dlmopen") return by_dlsym(::dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW));
  if (how == "proc") return by_proc_address(flags);
  if (how == "proc_v1") return by_first_proc_address(flags);
  if (how == "default") {
    (void)driver_handle(RTLD_NOW | RTLD_GLOBAL);
    return by_dlsym(RTLD_DEFAULT);
  }
#if defined(__x86_64__)
  if (how == "old_dlsym") {
    return [handle = driver_handle(RTLD_NOW)](const char*, const char* symbol) {
      return dlsym_of_old_programs(handle, symbol);
    };
  }
#endif
  (void)std::fprintf(stderr, "no such look-up: %s\n", how.c_str());
  ::exit(2);
}
#endif

Functions load(const std::string& how, bool thread_stream) {
  Functions functions;
#ifdef CLIENT_LINKED
  (void)how;
  (void)thread_stream;
#define CLIENT_LOAD(base, symbol) functions.base = symbol;
  CLIENT_FUNCTIONS(CLIENT_LOAD)
  CLIENT_STREAM_FUNCTIONS(CLIENT_LOAD)
#undef CLIENT_LOAD
#else
  const Lookup find = lookup_of(how, thread_stream);
#define CLIENT_LOAD(base, symbol) \
  functions.base = reinterpret_cast<abi::call::symbol*>(find(#base, #symbol));
  CLIENT_FUNCTIONS(CLIENT_LOAD)
#undef CLIENT_LOAD
#define CLIENT_LOAD(base, symbol)                        \
  functions.base = reinterpret_cast<abi::call::symbol*>( \
      find(#base, thread_stream ? #symbol "_ptsz" : #symbol));
  CLIENT_STREAM_FUNCTIONS(CLIENT_LOAD)
#undef CLIENT_LOAD
#endif
  return functions;
}

/// One thread's memory of every kind, got and given back at random.
class Stress {
 public:
  Stress(const Functions& functions, std::uint64_t seed)
      : cu_(functions), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  void run(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (held_.size() < 12 && random_() % 2 == 0) {
        get();
      } else if (!held_.empty()) {
        give_back(random_() % held_.size());
      }
    }
  }

 private:
  using GiveBack = std::function<void()>;
  std::uint64_t bytes() { return (1 + random_() % 512) << 20; }

  /// What was refused is not held.
  void keep(abi::Result result, GiveBack give_back) {
    if (result == abi::kSuccess) held_.push_back(std::move(give_back));
  }
  void get() {
    switch (random_() % 6) {
      case 0:
        return get_plain();
      case 1:
        return get_managed();
      case 2:
        return get_rows();
      case 3:
        return get_array();
      case 4:
        return get_of_pool();
      default:
        return get_mapped();
    }
  }
  void get_plain() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAlloc(&at, bytes());
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_managed() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAllocManaged(&at, bytes(), 1);
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_rows() {
    abi::DevicePtr at = 0;
    std::size_t pitch = 0;
    const abi::Result result = cu_.cuMemAllocPitch(&at, &pitch, 1 + random_() % 5000, 4096, 4);
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_array() {
    abi::Array made = nullptr;
    const abi::ArrayDescriptor descriptor{1 + random_() % 4096, 4096, abi::kFormatFloat, 2};
    const abi::Result result = cu_.cuArrayCreate(&made, &descriptor);
    keep(result, [this, made] { (void)cu_.cuArrayDestroy(made); });
  }
  void get_of_pool() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAllocAsync(&at, bytes(), nullptr);
    keep(result, [this, at] {
      (void)cu_.cuMemFreeAsync(at, nullptr);
      if (random_() % 4 == 0) (void)cu_.cuStreamSynchronize(nullptr);
    });
  }
  void get_mapped() {
    const abi::AllocationProp prop{.type = abi::kAllocationPinned,
                                   .requested_handle_types = 0,
                                   .location = {abi::kLocationDevice, 0},
                                   .handle_meta_data = nullptr,
                                   .flags = {}};
    const std::uint64_t size = bytes() * 2;
    abi::MemHandle handle = 0;
    const abi::Result result = cu_.cuMemCreate(&handle, size, &prop, 0);
    if (result != abi::kSuccess) return;
    abi::DevicePtr at = 0;
    (void)cu_.cuMemAddressReserve(&at, size, 0, 0, 0);
    (void)cu_.cuMemMap(at, size, 0, handle, 0);
    (void)cu_.cuMemRelease(handle);
    keep(result, [this, at, size] { (void)cu_.cuMemUnmap(at, size); });
  }
  void give_back(std::size_t which) {
    held_[which]();
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  const Functions& cu_;
  std::minstd_rand random_;
  std::vector<GiveBack> held_;
};

class Client {
 public:
  Client(const Functions& functions, char* program) : cu_(functions), program_(program) {}

  /// The answer to one command.
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string command;
    words >> command;
    numbers_.clear();
    for (std::uint64_t number = 0; words >> number;) numbers_.push_back(number);
    words.clear();
    words >> name_;
    const auto found = commands_.find(command);
    return found == commands_.end() ? "no such command" : found->second();
  }

 private:
  static std::string said(abi::Result result) { return std::to_string(result); }
  template <typename... Values>
  static std::string said(abi::Result result, Values... values) {
    std::string text = std::to_string(result);
    if (result == abi::kSuccess) (text.append(" ").append(std::to_string(values)), ...);
    return text;
  }
  [[nodiscard]] std::uint64_t number(std::size_t at) const {
    return at < numbers_.size() ? numbers_[at] : 0;
  }

  std::string context() {
    abi::Context made = nullptr;
    const abi::Result result = cu_.cuCtxCreate(&made, 0, static_cast<int>(number(0)));
    context_ = made;
    return said(result, reinterpret_cast<std::uintptr_t>(made));
  }
  std::string primary() {
    abi::Context made = nullptr;
    const auto device = static_cast<int>(number(0));
    const abi::Result result = cu_.cuDevicePrimaryCtxRetain(&made, device);
    return said(result == abi::kSuccess ? cu_.cuCtxSetCurrent(made) : result);
  }
  std::string info() {
    std::size_t free = 0;
    std::size_t total = 0;
    const abi::Result result = cu_.cuMemGetInfo(&free, &total);
    return said(result, free, total);
  }
  std::string total() {
    std::size_t bytes = 0;
    const abi::Result result = cu_.cuDeviceTotalMem(&bytes, static_cast<int>(number(0)));
    return said(result, bytes);
  }
  template <typename Get>
  static std::string pointer(Get get) {
    abi::DevicePtr address = 0;
    const abi::Result result = get(&address);
    return said(result, address);
  }
  std::string alloc_pitch() {
    return pointer([&](abi::DevicePtr* out) {
      std::size_t pitch = 0;
      return cu_.cuMemAllocPitch(out, &pitch, number(0), number(1), 4);
    });
  }
  std::string pool() {
    const abi::PoolProps props{.type = abi::kAllocationPinned,
                               .handle_types = 0,
                               .location = {abi::kLocationDevice, static_cast<int>(number(0))},
                               .security_attributes = nullptr,
                               .max_size = 0,
                               .usage = 0,
                               .reserved = {}};
    abi::MemPool made = nullptr;
    const abi::Result result = cu_.cuMemPoolCreate(&made, &props);
    return said(result, reinterpret_cast<std::uintptr_t>(made));
  }
  std::string default_pool() {
    abi::MemPool its = nullptr;
    const abi::Result result = cu_.cuDeviceGetDefaultMemPool(&its, static_cast<int>(number(0)));
    return said(result, reinterpret_cast<std::uintptr_t>(its));
  }
  std::string create() {
    const abi::AllocationProp prop{.type = abi::kAllocationPinned,
                                   .requested_handle_types = 0,
                                   .location = {static_cast<int>(number(1)), 0},
                                   .handle_meta_data = nullptr,
                                   .flags = {}};
    abi::MemHandle handle = 0;
    const abi::Result result = cu_.cuMemCreate(&handle, number(0), &prop, 0);
    return said(result, handle);
  }
  std::string retain() {
    abi::MemHandle handle = 0;
    const abi::Result result =
        cu_.cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(number(0)));
    return said(result, handle);
  }
  std::string array() {
    const abi::ArrayDescriptor descriptor{number(0), number(1), abi::kFormatFloat, 2};
    abi::Array made = nullptr;
    const abi::Result result = cu_.cuArrayCreate(&made, &descriptor);
    return said(result, reinterpret_cast<std::uintptr_t>(made));
  }
  [[nodiscard]] abi::Array3dDescriptor volume() const {
    return {number(0), number(1), number(2), abi::kFormatHalf, 1, 0};
  }
  std::string array3d() {
    const abi::Array3dDescriptor descriptor = volume();
    abi::Array made = nullptr;
    const abi::Result result = cu_.cuArray3DCreate(&made, &descriptor);
    return said(result, reinterpret_cast<std::uintptr_t>(made));
  }
  std::string mipmap() {
    const abi::Array3dDescriptor descriptor = volume();
    abi::MipmappedArray made = nullptr;
    const abi::Result result = cu_.cuMipmappedArrayCreate(&made, &descriptor, 3);
    return said(result, reinterpret_cast<std::uintptr_t>(made));
  }
  std::string launch() {
    const auto blocks = static_cast<unsigned int>(number(0));
    return said(cu_.cuLaunchKernel(nullptr, blocks, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr));
  }
  /// "FILE OF THE POINTER" of each function: what a caller really calls.
  /// Goes on as another program, this one, which says that it is there.
  [[nodiscard]] std::string execute() const {
    std::string how = name_;
    std::array<char*, 3> arguments{program_, how.data(), nullptr};
    (void)::setenv("CLIENT_EXECUTED", "", 1);
    (void)::execv(program_, arguments.data());
    return "1";
  }

  /// What a library finds in all libraries that is loaded for this program alone.
  [[nodiscard]] std::string plugin() const {
    void* const library = ::dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return ::dlerror();
    auto* finds = reinterpret_cast<bool (*)(const char*)>(::dlsym(library, "plugin_finds"));
    std::string found = "0";
    for (const char* name : {"plugin_own", "plugin_needed", "no_such_function"}) {
      found.append(finds(name) ? " 1" : " 0");
    }
    return found;
  }

  std::string where() const {
    std::string text;
    const auto add = [&text](const char* name, const void* function) {
      Dl_info facts{};
      if (function == nullptr || ::dladdr(function, &facts) == 0) return;
      const std::string file = facts.dli_fname;
      text.append(" ").append(name).append("=").append(file.substr(file.rfind('/') + 1));
      if (facts.dli_sname != nullptr) text.append(":").append(facts.dli_sname);
    };
#define CLIENT_ADD(base, symbol) add(#base, reinterpret_cast<const void*>(cu_.base));
    CLIENT_FUNCTIONS(CLIENT_ADD)
    CLIENT_STREAM_FUNCTIONS(CLIENT_ADD)
#undef CLIENT_ADD
    return "0" + text;
  }
  std::string used() const {
    using Used = void(abi::Device, std::uint64_t*, std::uint64_t*);
    auto* ask = reinterpret_cast<Used*>(::dlsym(driver_handle(RTLD_NOW), "fakeCudaUsed"));
    std::uint64_t bytes = 0;
    std::uint64_t peak = 0;
    ask(static_cast<int>(number(0)), &bytes, &peak);
    return said(abi::kSuccess, bytes, peak);
  }
  std::string calls() const {
    auto* ask =
        reinterpret_cast<int (*)(const char*)>(::dlsym(driver_handle(RTLD_NOW), "fakeCudaCalls"));
    return said(abi::kSuccess, ask(name_.c_str()));
  }
  /// As nvidia-smi and pynvml: "TOTAL FREE USED" by each version of the call.
  std::string nvml_memory() const {
    void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (library == nullptr) return "no libnvidia-ml.so.1";
    (void)reinterpret_cast<nvml::Init>(::dlsym(library, "nvmlInit_v2"))();
    nvml::Handle device = nullptr;
    (void)reinterpret_cast<nvml::GetHandle>(::dlsym(library, "nvmlDeviceGetHandleByIndex_v2"))(
        static_cast<std::uint32_t>(number(0)), &device);
    nvml::MemoryV1 first{};
    (void)reinterpret_cast<nvml::GetMemoryV1>(::dlsym(library, "nvmlDeviceGetMemoryInfo"))(device,
                                                                                           &first);
    nvml::MemoryV2 second{.version = nvml::kMemoryV2};
    (void)reinterpret_cast<nvml::GetMemoryV2>(::dlsym(library, "nvmlDeviceGetMemoryInfo_v2"))(
        device, &second);
    return said(
        abi::kSuccess, first.total, first.free, first.used, second.total, second.free, second.used);
  }
  /// The rest of the commands is the child's; its parent answers with what became of it.
  std::string fork_child() {
    const pid_t child = ::fork();
    if (child == 0) return "0 child";
    int status = 0;
    (void)::waitpid(child, &status, 0);
    return said(abi::kSuccess, WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  /// Allocates and frees without end: for those who kill it.
  std::string churn() {
    for (std::uint64_t round = 0;; ++round) {
      abi::DevicePtr address = 0;
      const std::uint64_t bytes = (1 + round % 7) << 20;
      if (cu_.cuMemAlloc(&address, bytes) == abi::kSuccess && round % 64 != 0) {
        (void)cu_.cuMemFree(address);
      }
    }
  }

  /// Four threads, so many steps each; what they hold then they keep.
  std::string stress() {
    std::vector<std::thread> threads;
    for (std::uint64_t thread = 0; thread < 4; ++thread) {
      stresses_.push_back(std::make_unique<Stress>(cu_, number(0) * 4 + thread));
      threads.emplace_back([this, steps = number(1), its = stresses_.back().get()] {
        (void)cu_.cuCtxSetCurrent(context_);
        its->run(steps);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return said(cu_.cuStreamSynchronize(nullptr));
  }
  /// Looks functions up from sixteen threads while libraries come and go.
  std::string look_up() {
    std::atomic<bool> ends = false;
    std::atomic<std::uint64_t> wrong = 0;
    std::vector<std::thread> threads;
    void* const expected = ::dlsym(driver_handle(RTLD_NOW), "cuMemAlloc_v2");
    for (int thread = 0; thread < 16; ++thread) {
      threads.emplace_back([&, rounds = number(0)] {
        for (std::uint64_t round = 0; round < rounds; ++round) {
          void* const found =
              ::dlsym(round % 2 == 0 ? RTLD_DEFAULT : driver_handle(RTLD_NOW), "cuMemAlloc_v2");
          if (found != expected) ++wrong;
        }
      });
    }
    std::thread loader([&] {
      while (!ends) {
        if (void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW)) (void)::dlclose(library);
      }
    });
    for (std::thread& thread : threads) thread.join();
    ends = true;
    loader.join();
    return said(abi::kSuccess, wrong.load());
  }

  Functions cu_;
  abi::Context context_ = nullptr;
  std::vector<std::unique_ptr<Stress>> stresses_;
  std::vector<std::uint64_t> numbers_;
  std::string name_;
  char* program_;
  std::map<std::string, std::function<std::string()>> commands_{
      {"init", [&] { return said(cu_.cuInit(0)); }},
      {"context", [&] { return context(); }},
      {"destroy",
       [&] { return said(cu_.cuCtxDestroy(reinterpret_cast<abi::Context>(number(0)))); }},
      {"primary", [&] { return primary(); }},
      {"reset", [&] { return said(cu_.cuDevicePrimaryCtxReset(static_cast<int>(number(0)))); }},
      {"unretain",
       [&] { return said(cu_.cuDevicePrimaryCtxRelease(static_cast<int>(number(0)))); }},
      {"info", [&] { return info(); }},
      {"total", [&] { return total(); }},
      {"alloc", [&] { return pointer([&](auto* out) { return cu_.cuMemAlloc(out, number(0)); }); }},
      {"managed",
       [&] {
         return pointer([&](auto* out) { return cu_.cuMemAllocManaged(out, number(0), 1); });
       }},
      {"pitch", [&] { return alloc_pitch(); }},
      {"free", [&] { return said(cu_.cuMemFree(number(0))); }},
      {"host",
       [&] {
         void* memory = nullptr;
         return said(cu_.cuMemHostAlloc(&memory, number(0), 0));
       }},
      {"async",
       [&] {
         return pointer([&](auto* out) { return cu_.cuMemAllocAsync(out, number(0), nullptr); });
       }},
      {"from_pool",
       [&] {
         return pointer([&](auto* out) {
           return cu_.cuMemAllocFromPoolAsync(
               out, number(0), reinterpret_cast<abi::MemPool>(number(1)), nullptr);
         });
       }},
      {"free_async", [&] { return said(cu_.cuMemFreeAsync(number(0), nullptr)); }},
      {"pool", [&] { return pool(); }},
      {"default_pool", [&] { return default_pool(); }},
      {"destroy_pool",
       [&] { return said(cu_.cuMemPoolDestroy(reinterpret_cast<abi::MemPool>(number(0)))); }},
      {"keep",
       [&] {
         std::uint64_t bytes = number(1);
         return said(cu_.cuMemPoolSetAttribute(
             reinterpret_cast<abi::MemPool>(number(0)), abi::kPoolReleaseThreshold, &bytes));
       }},
      {"trim",
       [&] {
         return said(cu_.cuMemPoolTrimTo(reinterpret_cast<abi::MemPool>(number(0)), number(1)));
       }},
      {"create", [&] { return create(); }},
      {"release", [&] { return said(cu_.cuMemRelease(number(0))); }},
      {"retain", [&] { return retain(); }},
      {"address",
       [&] {
         return pointer(
             [&](auto* out) { return cu_.cuMemAddressReserve(out, number(0), 0, 0, 0); });
       }},
      {"map", [&] { return said(cu_.cuMemMap(number(0), number(1), 0, number(2), 0)); }},
      {"unmap", [&] { return said(cu_.cuMemUnmap(number(0), number(1))); }},
      {"array", [&] { return array(); }},
      {"array3d", [&] { return array3d(); }},
      {"free_array",
       [&] { return said(cu_.cuArrayDestroy(reinterpret_cast<abi::Array>(number(0)))); }},
      {"mipmap", [&] { return mipmap(); }},
      {"free_mipmap",
       [&] {
         return said(cu_.cuMipmappedArrayDestroy(reinterpret_cast<abi::MipmappedArray>(number(0))));
       }},
      {"launch", [&] { return launch(); }},
      {"sync", [&] { return said(cu_.cuStreamSynchronize(nullptr)); }},
      {"sync_context", [&] { return said(cu_.cuCtxSynchronize()); }},
      {"where", [&] { return where(); }},
      {"plugin", [&] { return plugin(); }},
      {"execute", [&] { return execute(); }},
      {"used", [&] { return used(); }},
      {"calls", [&] { return calls(); }},
      {"nvml", [&] { return nvml_memory(); }},
      {"fork", [&] { return fork_child(); }},
      {"churn", [&] { return churn(); }},
      {"stress", [&] { return stress(); }},
      {"look_up", [&] { return look_up(); }},
  };
};

}  // namespace

int main(int count, char** arguments) {
  const std::string how = count > 1 ? arguments[1] : "linked";
  const bool thread_stream = count > 2;
  Client client(load(how, thread_stream), arguments[0]);
  if (std::getenv("CLIENT_EXECUTED") != nullptr) std::cout << "0" << std::endl;
  for (std::string line; std::getline(std::cin, line);) {
    std::cout << client.answer(line) << std::endl;
  }
  return 0;
}
