// SPDX-License-Identifier: Apache-2.0
// gflow-shim ATTEMPT-DIRECTORY: supervises one attempt of a job. Started by the runner with the
// write end of its status pipe as descriptor 3. gflow-shim --standby ROOM V2GROUP GROUP...: the
// same, for an attempt it is told later through the socket that is its descriptor 4. gflow-shim
// --probe DIR...: joins control groups and ends. gflow-shim --probe-filter DIR DEVICE: joins one,
// and ends with whether that keeps it from the device. gflow-shim --hold [PID START
// [WAITER START]]: what an allocation runs in place of a program: ends with the first of these
// processes, else when it is told to. gflow-shim --launch MODE COMMAND...: what a job of several
// processes runs in place of its command.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "shim/hold.h"
#include "shim/launch.h"
#include "shim/shim.h"

#ifdef GFLOW_ADDRESS_SANITIZER
#include <sanitizer/lsan_interface.h>

/// Who looks for leaks at the end attaches itself, which sends SIGSTOP, and waits for the stop. The
/// daemon's SIGCONT, which comes with each of its words, takes that back (signal(7)), and the wait
/// has no end.
int __lsan_is_turned_off() { return 1; }
#endif

int main(int argc, char** argv) {
  constexpr int kStatus = 3;
  if (argc >= 3 && std::string_view(argv[1]) == "--probe") {
    return gflow::shim::probe_cgroups(argc - 2, argv + 2);
  }
  if (argc == 4 && std::string_view(argv[1]) == "--probe-filter") {
    return gflow::shim::probe_filter(argv[2], argv[3]);
  }
  if (argc >= 4 && std::string_view(argv[1]) == "--standby") {
    constexpr int kOrders = 4;
    const gflow::shim::Fd status(::fcntl(kStatus, F_SETFD, FD_CLOEXEC) == 0 ? kStatus : -1);
    gflow::shim::Fd orders(::fcntl(kOrders, F_SETFD, FD_CLOEXEC) == 0 ? kOrders : -1);
    return gflow::shim::stand_by(argc - 1, argv + 1, std::move(orders), status);
  }
  if (argc >= 2 && std::string_view(argv[1]) == "--hold") {
    return gflow::shim::hold_for(argc - 2, argv + 2);
  }
  if (argc >= 2 && std::string_view(argv[1]) == "--launch") {
    return gflow::shim::launch(argc - 2, argv + 2);
  }
  if (argc != 2 || argv[1][0] != '/') {
    (void)std::fputs("usage: gflow-shim ATTEMPT-DIRECTORY (started by gflowd)\n", stderr);
    return 2;
  }
  const gflow::shim::Fd status(::fcntl(kStatus, F_SETFD, FD_CLOEXEC) == 0 ? kStatus : -1);
  return gflow::shim::run_attempt(argv[1], status);
}
