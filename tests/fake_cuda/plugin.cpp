// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

// A library that a program loads with RTLD_LOCAL, and what it finds in all libraries: itself and
// the one it needs are among them for it alone.
extern "C" {

#ifdef PLUGIN_NEEDED
__attribute__((visibility("default"))) int plugin_needed() { return 1; }
#else
int plugin_needed();
__attribute__((visibility("default"))) int plugin_own() { return plugin_needed(); }
/// Names as the driver's, and one that is the driver's: a library may have functions of its own.
__attribute__((visibility("default"))) int cublasCreate_v2() { return 7; }
__attribute__((visibility("default"))) int cuProfilerStart() { return 8; }
__attribute__((visibility("default"))) bool plugin_finds(const char* name) {
  return ::dlsym(RTLD_DEFAULT, name) != nullptr;
}
#endif

}  // extern "C"
