// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "interpose/real.h"

// In the place of interpose/dlsym.cpp, in a program that has the hooks within it: sanitizers look
// at them there, which cannot be loaded before a program that is not sanitized, too.
namespace gflow::interpose {

Dlsym* real_dlsym() { return ::dlsym; }

}  // namespace gflow::interpose
