// SPDX-License-Identifier: Apache-2.0
#include "shim/shim.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "attempt/claim.h"
#include "base/text_fields.h"
#include "shim/attempt_dir.h"
#include "shim/payload.h"
#include "shim/pending_signals.h"
#include "shim/supervisor.h"

namespace gflow::shim {
namespace {

/// Blocks all signals: they are read from a descriptor. What was inherited as ignored would not be
/// delivered at all (with SIGCHLD ignored wait(2) is useless) and survives execve(2), so everything
/// goes back to its default first, for the job, too.
void take_over_signals() {
  // By the bare system call: signal(3) refuses the two that glibc keeps for itself, and those may
  // be inherited as ignored as well. Zeros are SIG_DFL without flags on every architecture.
  constexpr std::array<unsigned long, 4> kDefault{};
  for (int number = 1; number <= 64; ++number) {
    (void)::syscall(SYS_rt_sigaction, number, kDefault.data(), nullptr, sizeof(unsigned long));
  }
  sigset_t all;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

void say(const Fd& status, const attempt::StatusLine& line) {
  (void)write_whole(status.get(), attempt::encode_status(line));  // the daemon may be gone
}

int give_up(const Fd& status, const Trouble& why) {
  say(status, attempt::ShimFailed{why.text, why.error});
  return 1;
}

/// Tries until the record is on disk, for ever: as long as the lock is held nobody takes the job
/// for lost, and a disk that is repaired still gets its record.
void store_record(AttemptDir& dir, const attempt::ExitRecord& record) {
  constexpr int kMaxMs = 60'000;
  for (int wait_ms = 1'000; !dir.store(record); wait_ms = std::min(2 * wait_ms, kMaxMs)) {
    (void)::poll(nullptr, 0, wait_ms);
  }
}

attempt::ExitRecord no_payload(const attempt::Order& order, const Trouble& why) {
  attempt::ExitRecord record;
  record.job = order.job;
  record.attempt = order.attempt;
  record.launch_id = order.launch_id;
  record.boot_id = order.boot_id;
  record.reason = attempt::Ending::LaunchFailed;
  record.step = attempt::Step::Fork;
  record.error = why.error;
  record.started_wall_ms = record.ended_wall_ms = wall_ms();
  record.message = why.text;
  return record;
}

attempt::ExitRecord run_job(const attempt::Order& order,
                            const AttemptDir& dir,
                            const Fd& status,
                            WaitPoints points,
                            const std::optional<Recruited>& recruited) {
  JobLog log = open_log(order);
  auto payload = start_payload(order, log, dir.record(), recruited);
  if (!payload) return no_payload(order, payload.error());
  Supervisor supervisor(order, std::move(*payload), std::move(points));
  attempt::ExitRecord record =
      supervisor.run([&status](int pid) { say(status, attempt::ShimStarted{pid}); });
  if (record.reason == attempt::Ending::LaunchFailed) {
    add_to_log(log, "the job could not be started: " + record.message);
  }
  return record;
}

void become_supervisor() {
  take_over_signals();
  (void)::setsid();  // fails only if it is one already
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)write_path("/proc/self/oom_score_adj", "-900");  // only root may, and only some root
}

int supervise(const std::string& directory,
              const Fd& status,
              const std::optional<Recruited>& recruited) {
  auto dir = AttemptDir::open(directory);
  if (!dir) return give_up(status, dir.error());
  const auto order = dir->read_order();
  if (!order) return give_up(status, order.error());
  if (const auto ready = dir->allocate_record(); !ready) return give_up(status, ready.error());
  auto points = WaitPoints::open();
  if (!points) return give_up(status, points.error());
  const auto claimed = dir->claim(order->boot_id);
  if (!claimed) return give_up(status, claimed.error());
  if (*claimed == ClaimResult::Revoked) return 0;
  store_record(*dir, run_job(*order, *dir, status, std::move(*points), recruited));
  return 0;
}

/// The fields of the one message; empty if the other end was closed.
std::vector<std::string> receive_orders(const Fd& orders) {
  // Asks for its size first: this process is one per running job, and keeps what it touched.
  const auto receive = [&orders](std::span<char> into, int flags) {
    ssize_t got = 0;
    do {
      got = ::recv(orders.get(), into.data(), into.size(), flags);
    } while (got < 0 && errno == EINTR);
    return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
  };
  std::vector<char> buffer(receive({}, MSG_PEEK | MSG_TRUNC));
  std::string_view rest(buffer.data(), receive(buffer, 0));
  std::vector<std::string> fields;
  while (!rest.empty()) fields.emplace_back(take_field(rest, '\0'));
  return fields;
}

/// In /proc/<pid>/cmdline, by which a supervisor is found whose directory somebody removed.
void show_as_argument(const std::string& directory, int count, char** arguments) {
  char* const begin = arguments[0];
  char* const last = arguments[count - 1];
  const auto room = static_cast<std::size_t>(last + std::strlen(last) - begin);
  if (directory.size() > room) return;
  std::fill_n(begin, room, '\0');
  std::ranges::copy(directory, begin);
}

/// So that whoever adopts the orphans of this process has none to reap. One that became the job is
/// no child any more.
void await_end(std::optional<Recruited>& recruited) {
  if (recruited) recruited->process.orders.reset();
  while (::waitpid(-1, nullptr, 0) > 0 || errno == EINTR) {
  }
}

}  // namespace

int run_attempt(const std::string& directory, const Fd& status) {
  become_supervisor();
  return supervise(directory, status, std::nullopt);
}

int stand_by(int count, char** arguments, Fd orders, const Fd& status) {
  become_supervisor();
  const std::string unified = arguments[2];
  const std::vector<std::string> others(arguments + 3, arguments + count);
  auto recruit = start_recruit(unified, others);
  std::vector<std::string> fields = receive_orders(orders);
  orders.reset();
  std::optional<Recruited> recruited;
  if (recruit) recruited.emplace(std::move(*recruit), std::vector<std::string>{});
  int result = 0;
  if (!fields.empty()) {
    show_as_argument(fields.front(), count, arguments);
    if (recruited) recruited->joined.assign(fields.begin() + 1, fields.end());
    discard_signals_to_supervisor();
    result = supervise(fields.front(), status, recruited);
  }
  await_end(recruited);
  return result;
}

int probe_cgroups(int count, char** directories) {
  for (int i = 0; i < count; ++i) {
    if (!write_path(std::string(directories[i]) + "/cgroup.procs", "0")) return errno;
  }
  return 0;
}

int probe_filter(const char* group, const char* device) {
  if (!write_path(std::string(group) + "/cgroup.procs", "0")) return errno;
  const Fd opened(::open(device, O_RDONLY | O_CLOEXEC));
  if (opened.valid()) return EBADE;
  return errno == EPERM ? 0 : errno;
}

}  // namespace gflow::shim
