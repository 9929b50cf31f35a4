// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <unistd.h>

// A library that is loaded before a program, too, and passes a function on to the next one that has
// it: the usual way to wrap a function.
extern "C" __attribute__((visibility("default"))) pid_t getppid() {
  static auto* const kNext = reinterpret_cast<pid_t (*)()>(::dlsym(RTLD_NEXT, "getppid"));
  return kNext == &getppid ? -1 : kNext();
}
extern "C" __attribute__((visibility("default"))) int finds_next(const char* name) {
  return ::dlsym(RTLD_NEXT, name) != nullptr ? 1 : 0;
}
extern "C" __attribute__((visibility("default"))) void* next_of(const char* name) {
  void* volatile const found = ::dlsym(RTLD_NEXT, name);  // who looks up is this library
  return found;
}

/// As one that is linked to the driver if there is one: what it says; -1 if it is not.
extern "C" __attribute__((weak)) int cuInit(unsigned int flags);
extern "C" __attribute__((visibility("default"))) int call_linked() {
  return cuInit == nullptr ? -1 : cuInit(0);
}
