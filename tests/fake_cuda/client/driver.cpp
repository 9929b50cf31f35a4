// SPDX-License-Identifier: Apache-2.0
#include "client/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

#ifdef CLIENT_LINKED
extern "C" {
#define CLIENT_DECLARE(base, symbol) gflow::cuda::abi::call::symbol symbol;
CLIENT_FUNCTIONS(CLIENT_DECLARE)
CLIENT_STREAM_FUNCTIONS(CLIENT_DECLARE)
#undef CLIENT_DECLARE
}
#endif
#if defined(__x86_64__)
extern "C" void* dlsym_of_old_programs(void* handle, const char* name);
__asm__(".symver dlsym_of_old_programs, dlsym@GLIBC_2.2.5");
#endif

namespace client {

void* driver_handle(int flags) {
  void* const handle = ::dlopen("libcuda.so.1", flags);
  if (handle == nullptr) {
    (void)std::fprintf(stderr, "%s\n", ::dlerror());
    ::exit(1);
  }
  return handle;
}

namespace {

#ifndef CLIENT_LINKED
using Lookup = std::function<void*(const char* base, const char* symbol)>;

/// Through cuGetProcAddress_v2 as the runtime of that version of CUDA does: it looks that up itself
/// first.
Lookup by_proc_address(std::uint64_t flags, int version) {
  auto* first = reinterpret_cast<abi::call::cuGetProcAddress_v2*>(
      ::dlsym(driver_handle(RTLD_NOW), "cuGetProcAddress_v2"));
  void* own = nullptr;
  (void)first("cuGetProcAddress", &own, version, flags, nullptr);
  auto* ask = reinterpret_cast<abi::call::cuGetProcAddress_v2*>(own);
  return [ask, flags, version](const char* base, const char*) {
    void* found = nullptr;
    abi::ProcAddressStatus status = 0;
    (void)ask(base, &found, version, flags, &status);
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
  if (how == "proc") return by_proc_address(flags, 12090);
  if (how == "proc_13") return by_proc_address(flags, 13000);
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

}  // namespace

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

}  // namespace client
