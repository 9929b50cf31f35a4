// SPDX-License-Identifier: Apache-2.0
#include "requests.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <ctime>

namespace fake_cuda {

void wait_for_change(std::uint32_t& word, std::uint32_t seen) {
  const timespec most{.tv_sec = 0, .tv_nsec = 20'000'000};
  (void)::syscall(SYS_futex, &word, FUTEX_WAIT, seen, &most, nullptr, 0);
}

std::uint32_t value_of(std::uint32_t& word) { return std::atomic_ref(word).load(); }

void change(std::uint32_t& word, std::uint32_t value) {
  std::atomic_ref(word).store(value);
  (void)::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace fake_cuda
