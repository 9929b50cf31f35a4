// SPDX-License-Identifier: Apache-2.0
#include <sched.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

// What the compiler and the containers call of the C++ runtime, so that none of it is linked in: it
// is made for the C library of the machine it was built on, and would keep this library from
// loading in a container with an older one. Nothing is thrown here.

// NOLINTBEGIN(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory,cert-dcl58-cpp)

void* operator new(std::size_t size) {
  void* const made = std::malloc(size == 0 ? 1 : size);
  if (made == nullptr) std::abort();
  return made;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t /*size*/) noexcept { std::free(memory); }

#ifdef __GLIBCXX__
namespace std {

void __throw_bad_alloc() { abort(); }
void __throw_bad_array_new_length() { abort(); }
void __throw_length_error(const char* /*what*/) { abort(); }
void __throw_out_of_range_fmt(const char* /*format*/, ...) { abort(); }
void __throw_system_error(int /*number*/) { abort(); }

}  // namespace std
#endif

// NOLINTEND(cppcoreguidelines-no-malloc,cppcoreguidelines-owning-memory,cert-dcl58-cpp)

/// A variable that is made by the first thread that comes to it: the first byte says that it is
/// (Itanium C++ ABI, 3.3.3), the second that a thread is at it.
struct Guard {
  std::atomic<bool> is_made;
  std::atomic<bool> is_being_made;
};
static_assert(sizeof(Guard) <= 8);

// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming): names of the ABI
extern "C" int __cxa_guard_acquire(Guard* guard) {
  while (!guard->is_made.load(std::memory_order_acquire)) {
    if (!guard->is_being_made.exchange(true, std::memory_order_acquire)) {
      if (!guard->is_made.load(std::memory_order_acquire)) return 1;
      guard->is_being_made.store(false, std::memory_order_release);
    } else {
      (void)::sched_yield();
    }
  }
  return 0;
}
extern "C" void __cxa_guard_release(Guard* guard) {
  guard->is_made.store(true, std::memory_order_release);
  guard->is_being_made.store(false, std::memory_order_release);
}
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
