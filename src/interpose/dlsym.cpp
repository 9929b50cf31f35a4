// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "interpose/real.h"

// dlsym(3), under both versions the C library has of it: a definition without a version stands for
// every one. Symbols are found by the driver first; what is found is what is routed.
//
// A look-up is relative to who calls: in "the next library", or every other library that is loaded
// before the program would find itself, and in all libraries, which for a plugin are also its own
// and those it needs. What is no look-up of what this library exports is passed on by a jump that
// leaves no frame of this library.

namespace gflow::interpose {
namespace {

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): found before anything is made
constinit std::atomic<Dlsym*> found_dlsym = nullptr;

}  // namespace

Dlsym* real_dlsym() {
  if (Dlsym* known = found_dlsym.load(std::memory_order_acquire)) return known;
  void* found = nullptr;
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.17", "GLIBC_2.2.5"}) {
    found = ::dlvsym(RTLD_NEXT, "dlsym", version);
    if (found != nullptr) break;
  }
  auto* const function = reinterpret_cast<Dlsym*>(found);
  found_dlsym.store(function, std::memory_order_release);
  return function;
}

namespace {

/// Where in the order of all libraries who looks something up stands, and this one.
struct Places {
  const void* caller;
  int at = 0;
  int of_caller = 0;  ///< 0: not known
  int own = 0;
};

bool holds(const dl_phdr_info& library, const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  for (int index = 0; index < library.dlpi_phnum; ++index) {
    const auto& part = library.dlpi_phdr[index];
    const std::uintptr_t start = library.dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && wanted - start < part.p_memsz) return true;
  }
  return false;
}

int note_place(dl_phdr_info* library, std::size_t /*size*/, void* data) {
  auto& places = *static_cast<Places*>(data);
  // That of the kernel has nothing to be found.
  if (std::strncmp(library->dlpi_name, "linux-", 6) == 0) return 0;
  ++places.at;
  if (holds(*library, places.caller)) places.of_caller = places.at;
  if (holds(*library, reinterpret_cast<const void*>(&note_place))) places.own = places.at;
  return 0;
}

}  // namespace
}  // namespace gflow::interpose

extern "C" {

static void* routed_dlsym(void* handle, const char* name) {
  return gflow::interpose::routed(name, gflow::interpose::real_dlsym()(handle, name));
}

/// For who looks in the libraries behind itself, of which this one may be one, for what no library
/// has: the C library has none of it, either, and says so.
static void* absent_dlsym(void* /*handle*/, const char* name) {
  return gflow::interpose::real_dlsym()(::dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
}

/// For who stands before this library: what is behind it.
static void* behind_dlsym(void* /*handle*/, const char* name) {
  using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): of the C interface
  return routed(name, real_dlsym()(RTLD_NEXT, name));
}

/// In the libraries behind who calls, for the name of a stub: that stub is not to be found there,
/// unless a library between the two has such a function, which would be passed over.
static gflow::interpose::Dlsym* next_dlsym_for(const char* name, const void* caller) {
  using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): of the C interface
  Places places{.caller = caller};
  (void)::dl_iterate_phdr(note_place, &places);
  if (places.of_caller == 0 || places.of_caller > places.own) return real_dlsym();
  const bool is_next = places.of_caller + 1 == places.own;
  return is_next || !is_behind(name) ? behind_dlsym : real_dlsym();
}

/// What the entry below jumps to. The hooks are found wherever they are looked up, as this library
/// is before all others.
__attribute__((used, visibility("hidden"))) gflow::interpose::Dlsym* gflow_share_dlsym_for(
    void* handle, const char* name, const void* caller) {
  if (!gflow::interpose::is_exported(name)) return gflow::interpose::real_dlsym();
  if (handle != RTLD_NEXT) return routed_dlsym;
  if (!gflow::interpose::is_hooked(name)) return next_dlsym_for(name, caller);
  return gflow::interpose::is_behind(name) ? gflow::interpose::real_dlsym() : absent_dlsym;
}

}  // extern "C"

#if defined(__x86_64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movq 24(%rsp), %rdx
  call gflow_share_dlsym_for
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#elif defined(__aarch64__)
__asm__(R"(
  .text
  .globl dlsym
  .type dlsym, %function
dlsym:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, #16]
  mov x2, x30
  bl gflow_share_dlsym_for
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
  .size dlsym, .-dlsym
)");
#else
#error "look-ups have to be passed on without a frame: write it for this processor"
#endif
