// SPDX-License-Identifier: Apache-2.0
#include "interpose/wanted.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "share/account.h"

namespace gflow::interpose {
namespace {

/// As the kernel has it, which is smaller than that of the C library.
using Signals = std::uint64_t;
constexpr Signals kPipe = Signals{1} << (SIGPIPE - 1);

/// The reader may go between the opening and the writing: the signal of that would end the program.
/// It is kept from the thread, and taken away if it was not waiting there before.
class WithoutPipeSignal {
 public:
  WithoutPipeSignal() {
    Signals waiting = 0;
    (void)::syscall(SYS_rt_sigpending, &waiting, sizeof waiting);
    was_waiting_ = (waiting & kPipe) != 0;
    (void)::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kPipe, &before_, sizeof before_);
  }
  ~WithoutPipeSignal() {
    constexpr timespec kNow{};
    if (is_raised && !was_waiting_) {
      (void)::syscall(SYS_rt_sigtimedwait, &kPipe, nullptr, &kNow, sizeof kPipe);
    }
    (void)::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  WithoutPipeSignal(const WithoutPipeSignal&) = delete;
  WithoutPipeSignal& operator=(const WithoutPipeSignal&) = delete;

  bool is_raised = false;

 private:
  Signals before_ = 0;
  bool was_waiting_ = false;
};

}  // namespace

void tell_wanted(std::atomic<std::uint32_t>& lent, const char* pipe) {
  std::uint32_t expected = share::kLent;
  if (!lent.compare_exchange_strong(expected, share::kWanted)) return;
  constexpr int kFlags = O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW;
  const long file = ::syscall(SYS_openat, AT_FDCWD, pipe, kFlags);
  if (file < 0) return;
  {
    WithoutPipeSignal guard;
    constexpr char kByte = '\n';
    const long written = ::syscall(SYS_write, file, &kByte, sizeof kByte);
    guard.is_raised = written < 0 && errno == EPIPE;
  }
  (void)::syscall(SYS_close, file);
}

}  // namespace gflow::interpose
