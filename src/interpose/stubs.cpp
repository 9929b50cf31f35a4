// SPDX-License-Identifier: Apache-2.0
#include "interpose/stubs.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>
#include <string_view>

#include "interpose/driver_names.h"
#include "interpose/real.h"
#include "interpose/session.h"

namespace gflow::interpose {
namespace {

using Word = std::atomic<std::uint32_t>;
using Target = std::atomic<void*>;

// -- the names, as one text, so that the loader has no pointers to them to write

#define GFLOW_TEXT(name) #name "\0"
constexpr char kText[] = GFLOW_CUDA_NAMES(GFLOW_TEXT);
#undef GFLOW_TEXT
#define GFLOW_COUNT(name) +1  // NOLINT(bugprone-macro-parentheses): terms of a sum
constexpr std::size_t kNames = 0 GFLOW_CUDA_NAMES(GFLOW_COUNT);
#undef GFLOW_COUNT
static_assert(sizeof(kText) <= 1 << 16);

/// Where in the text each begins.
constexpr auto kBeginnings = [] {
  std::array<std::uint16_t, kNames> all{};
  std::size_t at = 0;
  for (std::uint16_t& beginning : all) {
    beginning = static_cast<std::uint16_t>(at);
    while (kText[at] != '\0') ++at;
    ++at;
  }
  return all;
}();

constexpr std::string_view name_at(std::uint16_t beginning) { return kText + beginning; }
static_assert(std::ranges::is_sorted(kBeginnings, {}, name_at));

std::optional<std::size_t> find_name(std::string_view name) {
  const auto* const found = std::ranges::lower_bound(kBeginnings, name, {}, name_at);
  if (found == kBeginnings.end() || name_at(*found) != name) return std::nullopt;
  return static_cast<std::size_t>(found - kBeginnings.begin());
}

// -- what stubs look at before they know which word it is, and where there is none

constinit const Word kAsk = share::kLent;
constinit const Word kNever = share::kNotLent;

/// As many as a driver has functions, and half as many more.
constexpr std::size_t kFound = 1024;

}  // namespace
}  // namespace gflow::interpose

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables,modernize-avoid-c-arrays)
extern "C" {

/// What all stubs look at.
__attribute__((used, visibility("hidden"))) constinit std::atomic<const gflow::interpose::Word*>
    gflow_share_lent = &gflow::interpose::kAsk;
/// Where each stub leads, those with names first: to gflow_share_tell until it is known.
__attribute__((visibility("hidden"))) extern gflow::interpose::Target gflow_share_targets[];
/// The code of the first and of the one after the last, which all have one length.
__attribute__((visibility("hidden"))) extern char gflow_share_first_stub[];
__attribute__((visibility("hidden"))) extern char gflow_share_last_stub[];
/// Calls gflow_share_prepare() and goes where that says, with all arguments as they were.
__attribute__((visibility("hidden"))) void gflow_share_tell();

}  // extern "C"
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables,modernize-avoid-c-arrays)

namespace gflow::interpose {
namespace {

constexpr std::size_t kStubs = kNames + kFound;

/// Of a function that no library has, which a program was linked to and calls all the same.
abi::Result absent() { return abi::kNotFound; }

void* stub_at(std::size_t number) {
  const auto length =
      static_cast<std::size_t>(gflow_share_last_stub - gflow_share_first_stub) / kStubs;
  return gflow_share_first_stub + number * length;
}

/// Where the stub of a name leads: it is kept once there is something.
void* resolve(std::size_t number) {
  void* const found = behind(kText + kBeginnings[number]);
  if (found == nullptr) return reinterpret_cast<void*>(&absent);
  gflow_share_targets[number].store(found, std::memory_order_release);
  return found;
}

}  // namespace

bool has_stub(const char* name) { return find_name(name).has_value(); }

void* exported_stub(const char* name) {
  const auto number = find_name(name);
  return number ? stub_at(*number) : nullptr;
}

void* stub_of(void* function) {
  if (function == nullptr) return nullptr;
  for (std::size_t number = kNames; number < kStubs; ++number) {
    void* its = gflow_share_targets[number].load(std::memory_order_acquire);
    if (its == nullptr && gflow_share_targets[number].compare_exchange_strong(its, function)) {
      return stub_at(number);
    }
    if (its == function) return stub_at(number);  // also if another thread was first
  }
  return function;
}

void watch_word(const Word* word) {
  gflow_share_lent.store(word == nullptr ? &kNever : word, std::memory_order_release);
}

void forget_word() { gflow_share_lent.store(&kAsk, std::memory_order_release); }

}  // namespace gflow::interpose

/// Where the stub of this number leads. Beforehand the process has taken its slot, and if its GPU
/// is lent, it has told and waited until it is its own again: one that came since would not be
/// locked, and use the GPU beside who has it. What the function finds in errno is what its caller
/// left there.
extern "C" __attribute__((used, visibility("hidden"))) void* gflow_share_prepare(
    std::uint32_t number) {
  using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): of the C interface
  const int before = errno;
  Session::get().watch();
  void* target = gflow_share_targets[number].load(std::memory_order_acquire);
  if (target == reinterpret_cast<void*>(&gflow_share_tell)) target = resolve(number);
  Session::get().await_own();
  errno = before;
  return target;
}

// One length for all, so that a stub is found by its number. A jump to another section is never
// made shorter.
#define GFLOW_NAMED_STUB(name) "gflow_share_named_stub " #name "\n"
#if defined(__x86_64__)
__asm__(R"(
  .macro gflow_share_stub
  .balign 16
  endbr64
  movq gflow_share_lent(%rip), %r11
  cmpl $0, (%r11)
  movl $gflow_share_number, %r11d
  jne gflow_share_tell
  jmpq *(gflow_share_targets + 8 * gflow_share_number)(%rip)
  .set gflow_share_number, gflow_share_number + 1
  .endm
  .macro gflow_share_named_stub name
  .balign 16
  .globl \name
  .type \name, @function
\name:
  gflow_share_stub
  .size \name, . - \name
  .endm
)");
#elif defined(__aarch64__)
__asm__(R"(
  .macro gflow_share_stub
  .balign 16
  hint 34
  adrp x16, gflow_share_lent
  ldr x16, [x16, :lo12:gflow_share_lent]
  ldr w17, [x16]
  cmp w17, #0
  mov w17, #gflow_share_number
  b.ne gflow_share_tell
  adrp x16, gflow_share_targets + 8 * gflow_share_number
  ldr x16, [x16, :lo12:gflow_share_targets + 8 * gflow_share_number]
  br x16
  .set gflow_share_number, gflow_share_number + 1
  .endm
  .macro gflow_share_named_stub name
  .balign 16
  .globl \name
  .type \name, %function
\name:
  gflow_share_stub
  .size \name, . - \name
  .endm
)");
#else
#error "functions of the driver have to be called with all arguments as they were: write it here"
#endif

#define GFLOW_NUMBER_TEXT(number) #number
#define GFLOW_TEXT_OF(number) GFLOW_NUMBER_TEXT(number)
__asm__(R"(
  .section .text.gflow_share_stubs, "ax"
  .balign 16
  .hidden gflow_share_first_stub
  .globl gflow_share_first_stub
gflow_share_first_stub:
  .cfi_startproc
  .set gflow_share_number, 0
)" GFLOW_CUDA_NAMES(GFLOW_NAMED_STUB) R"(
  .set gflow_share_names, gflow_share_number
  .rept 1024
  gflow_share_stub
  .endr
  .balign 16
  .cfi_endproc
  .hidden gflow_share_last_stub
  .globl gflow_share_last_stub
gflow_share_last_stub:

  .section .data.rel.gflow_share_targets, "aw"
  .balign 8
  .hidden gflow_share_targets
  .globl gflow_share_targets
gflow_share_targets:
  .rept gflow_share_names
  .quad gflow_share_tell
  .endr
  .zero 8 * 1024
  .text
)");
static_assert(gflow::interpose::kFound == 1024);

#if defined(__x86_64__)
__asm__(R"(
  .section .text.gflow_share_tell, "ax"
  .balign 16
  .hidden gflow_share_tell
  .globl gflow_share_tell
  .type gflow_share_tell, @function
gflow_share_tell:
  .cfi_startproc
  endbr64
  subq $200, %rsp
  .cfi_adjust_cfa_offset 200
  movaps %xmm0, (%rsp)
  movaps %xmm1, 16(%rsp)
  movaps %xmm2, 32(%rsp)
  movaps %xmm3, 48(%rsp)
  movaps %xmm4, 64(%rsp)
  movaps %xmm5, 80(%rsp)
  movaps %xmm6, 96(%rsp)
  movaps %xmm7, 112(%rsp)
  movq %rdi, 128(%rsp)
  movq %rsi, 136(%rsp)
  movq %rdx, 144(%rsp)
  movq %rcx, 152(%rsp)
  movq %r8, 160(%rsp)
  movq %r9, 168(%rsp)
  movq %r10, 176(%rsp)
  movq %rax, 184(%rsp)
  movl %r11d, %edi
  call gflow_share_prepare
  movq %rax, %r11
  movq 184(%rsp), %rax
  movq 176(%rsp), %r10
  movq 168(%rsp), %r9
  movq 160(%rsp), %r8
  movq 152(%rsp), %rcx
  movq 144(%rsp), %rdx
  movq 136(%rsp), %rsi
  movq 128(%rsp), %rdi
  movaps 112(%rsp), %xmm7
  movaps 96(%rsp), %xmm6
  movaps 80(%rsp), %xmm5
  movaps 64(%rsp), %xmm4
  movaps 48(%rsp), %xmm3
  movaps 32(%rsp), %xmm2
  movaps 16(%rsp), %xmm1
  movaps (%rsp), %xmm0
  addq $200, %rsp
  .cfi_adjust_cfa_offset -200
  jmpq *%r11
  .cfi_endproc
  .size gflow_share_tell, . - gflow_share_tell
  .text
)");
#elif defined(__aarch64__)
__asm__(R"(
  .section .text.gflow_share_tell, "ax"
  .balign 16
  .hidden gflow_share_tell
  .globl gflow_share_tell
  .type gflow_share_tell, %function
gflow_share_tell:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, #-224]!
  .cfi_def_cfa_offset 224
  .cfi_offset 29, -224
  .cfi_offset 30, -216
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x8, [sp, #80]
  stp q0, q1, [sp, #96]
  stp q2, q3, [sp, #128]
  stp q4, q5, [sp, #160]
  stp q6, q7, [sp, #192]
  mov w0, w17
  bl gflow_share_prepare
  mov x16, x0
  ldp q6, q7, [sp, #192]
  ldp q4, q5, [sp, #160]
  ldp q2, q3, [sp, #128]
  ldp q0, q1, [sp, #96]
  ldr x8, [sp, #80]
  ldp x6, x7, [sp, #64]
  ldp x4, x5, [sp, #48]
  ldp x2, x3, [sp, #32]
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #224
  .cfi_restore 29
  .cfi_restore 30
  .cfi_def_cfa_offset 0
  br x16
  .cfi_endproc
  .size gflow_share_tell, . - gflow_share_tell
  .text
)");
#endif
