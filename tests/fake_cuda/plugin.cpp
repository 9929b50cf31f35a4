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
__attribute__((visibility("default"))) bool plugin_finds(const char* name) {
  return ::dlsym(RTLD_DEFAULT, name) != nullptr;
}
#endif

}  // extern "C"
