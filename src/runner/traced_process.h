// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstdint>

namespace gflow::runner {

/// A process under a debugger, which no SIGCONT lets go on; until this is destroyed.
class Traced {
 public:
  enum class Step { SystemCall, Executed, Ended };

  explicit Traced(int pid) : pid_(pid) {
    constexpr long kOptions = PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD;
    if (::ptrace(PTRACE_SEIZE, pid, nullptr, kOptions) != 0) return;
    (void)::ptrace(PTRACE_INTERRUPT, pid, nullptr, nullptr);
    holds_ = wait() && WIFSTOPPED(status_);
  }
  ~Traced() {
    if (holds_) (void)::ptrace(PTRACE_DETACH, pid_, nullptr, nullptr);
  }
  Traced(const Traced&) = delete;
  Traced& operator=(const Traced&) = delete;
  [[nodiscard]] bool holds() const { return holds_; }

  /// Lets it go on until it enters or leaves its next system call, or has become another program.
  [[nodiscard]] Step step() {
    while (true) {
      const bool is_signal = WSTOPSIG(status_) != (SIGTRAP | 0x80) && status_ >> 16 == 0;
      const long deliver = is_signal ? WSTOPSIG(status_) : 0;
      if (::ptrace(PTRACE_SYSCALL, pid_, nullptr, deliver) != 0 || !wait()) return Step::Ended;
      if (!WIFSTOPPED(status_)) return ended();
      if (status_ >> 8 == (SIGTRAP | (PTRACE_EVENT_EXEC << 8))) return Step::Executed;
      if (WSTOPSIG(status_) == (SIGTRAP | 0x80)) return Step::SystemCall;
    }
  }
  /// Until it leaves this system call.
  [[nodiscard]] bool step_over(std::uint64_t number) {
    for (bool inside = false; step() == Step::SystemCall;) {
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) <= 0) return false;
      if (info.op == PTRACE_SYSCALL_INFO_EXIT && inside) return true;
      inside = info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == number;
    }
    return false;
  }
  /// Until it is about to write to this descriptor, and has not.
  [[nodiscard]] bool step_to_write(std::uint64_t fd) {
    while (true) {
      const Step step = this->step();
      if (step == Step::Ended) return false;
      __ptrace_syscall_info info{};
      if (::ptrace(PTRACE_GET_SYSCALL_INFO, pid_, sizeof info, &info) <= 0) return false;
      if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr == SYS_write &&
          info.entry.args[0] == fd) {
        return true;
      }
    }
  }
  /// It is told first that the process has ended; then its parent is.
  void wait_for_end() {
    while (holds_ && wait() && WIFSTOPPED(status_)) {
    }
    holds_ = false;
  }

 private:
  [[nodiscard]] bool wait() { return ::waitpid(pid_, &status_, __WALL) == pid_; }
  Step ended() {
    holds_ = false;
    return Step::Ended;
  }

  int pid_;
  int status_ = 0;
  bool holds_ = false;
};

}  // namespace gflow::runner
