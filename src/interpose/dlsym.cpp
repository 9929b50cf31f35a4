// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <atomic>

#include "interpose/real.h"

// dlsym(3), under both versions the C library has of it: a definition without a version stands for
// every one. Symbols are found by the driver first; what is found is what is routed.
//
// A look-up in "the next library" is relative to who calls: it is passed on by a jump that leaves
// no frame of this library, or every other library that is loaded before the program would find
// itself.

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

}  // namespace gflow::interpose

extern "C" {

/// What the entry below jumps to.
__attribute__((used, visibility("hidden"))) gflow::interpose::Dlsym* gflow_share_real_dlsym() {
  return gflow::interpose::real_dlsym();
}
__attribute__((used, visibility("hidden"))) void* gflow_share_routed_dlsym(void* handle,
                                                                           const char* name) {
  return gflow::interpose::routed(name, gflow::interpose::real_dlsym()(handle, name));
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
  cmpq $-1, %rdi
  jne gflow_share_routed_dlsym
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  call gflow_share_real_dlsym
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
  cmn x0, #1
  b.ne gflow_share_routed_dlsym
  stp x29, x30, [sp, #-32]!
  .cfi_def_cfa_offset 32
  .cfi_offset 29, -32
  .cfi_offset 30, -24
  stp x0, x1, [sp, #16]
  bl gflow_share_real_dlsym
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
#error \
    "the look-up of the next library has to be passed on without a frame: write it for this processor"
#endif
