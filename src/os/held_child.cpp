// SPDX-License-Identifier: Apache-2.0
#include "os/held_child.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "base/proc_text.h"
#include "base/text_fields.h"
#include "os/file.h"
#include "os/process.h"

namespace gflow::os {
namespace {

/// Texts on the way to it: how many, then each with its end.
struct Header {
  std::uint64_t arguments = 0;
  std::uint64_t bytes = 0;  ///< of all that follows
};

bool read_whole(int fd, void* into, std::size_t size) {
  auto* at = static_cast<char*>(into);
  while (size > 0) {
    const ssize_t got = ::read(fd, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

bool send_whole(int socket, const void* from, std::size_t size) {
  const auto* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t put = ::send(socket, at, size, MSG_NOSIGNAL);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    at += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

void default_signals() {
  for (int number = 1; number < NSIG; ++number) (void)::signal(number, SIG_DFL);
  sigset_t none{};
  (void)::sigemptyset(&none);
  (void)::pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

/// Its pid may have gone to another one since it was seen, and it may be gone.
void send_to(const ProcessFacts& process, int number) {
  const Fd held = hold_process(process.pid, process.start_time);
  (void)::syscall(SYS_pidfd_send_signal, held.get(), number, nullptr, 0);
}

/// Its life up to execve(2).
[[noreturn]] void wait_and_become(int orders, int failures) {
  Header header;
  if (!read_whole(orders, &header, sizeof header)) ::_exit(0);
  std::vector<char> texts(header.bytes);
  if (!read_whole(orders, texts.data(), texts.size())) ::_exit(0);
  std::vector<char*> argv;
  char* at = texts.data();
  for (std::uint64_t i = 0; i < header.arguments; ++i, at += std::strlen(at) + 1) {
    argv.push_back(at);
  }
  argv.push_back(nullptr);
  char* const end = texts.data() + texts.size();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): it has one thread
  for (; at != end; at += std::strlen(at) + 1) (void)::putenv(at);
  default_signals();
  (void)::execvp(argv.front(), argv.data());
  const int error = errno;
  (void)send_whole(failures, &error, sizeof error);
  constexpr int kNotRun = 127;
  ::_exit(kNotRun);
}

}  // namespace

Result<HeldChild> HeldChild::start() {
  std::array<int, 2> orders{};
  std::array<int, 2> failures{};
  constexpr int kKind = SOCK_STREAM | SOCK_CLOEXEC;
  if (::socketpair(AF_UNIX, kKind, 0, orders.data()) != 0) return errno_error("make a socket");
  const Fd its_orders(orders[0]);
  HeldChild child;
  child.orders_.reset(orders[1]);
  if (::socketpair(AF_UNIX, kKind, 0, failures.data()) != 0) return errno_error("make a socket");
  child.failures_.reset(failures[0]);
  const Fd its_failures(failures[1]);
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  child.pid_ = ::fork();
  if (child.pid_ < 0) return errno_error("create a process");
  if (child.pid_ == 0) {
    (void)::close(child.orders_.release());  // else it would wait for itself
    wait_and_become(its_orders.get(), its_failures.get());
  }
  child.process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.process_.valid()) return errno_error("hold on to a process");
  return child;
}

Result<void> HeldChild::become(const std::vector<std::string>& argv,
                               const std::vector<std::string>& environment) {
  std::string texts;
  for (const std::string& text : argv) texts.append(text).push_back('\0');
  for (const std::string& text : environment) texts.append(text).push_back('\0');
  const Header header{argv.size(), texts.size()};
  const bool told = send_whole(orders_.get(), &header, sizeof header) &&
                    send_whole(orders_.get(), texts.data(), texts.size());
  if (!told) return errno_error("run", argv.front());
  int error = 0;
  if (!read_whole(failures_.get(), &error, sizeof error)) return {};  // closed by execve(2)
  errno = error;
  return errno_error("run", argv.front());
}

std::size_t HeldChild::signal_all(int number) {
  std::vector<ProcessFacts> all;
  for (const std::string& name : names_in("/proc").value_or(std::vector<std::string>{})) {
    const auto pid = number_of<int>(name);
    if (const auto facts = pid ? process_facts(*pid) : std::nullopt) all.push_back(*facts);
  }
  std::size_t alive = 0;
  for (const ProcessFacts& process : descendants_of(::getpid(), all)) {
    if (process.is_dead()) continue;
    ++alive;
    send_to(process, number);
  }
  return alive;
}

int HeldChild::wait_for_exit_code() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  constexpr int kBySignal = 128;
  return WIFSIGNALED(status) ? kBySignal + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace gflow::os
