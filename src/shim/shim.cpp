// SPDX-License-Identifier: Apache-2.0
#include "shim/shim.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "attempt/claim.h"
#include "shim/attempt_dir.h"
#include "shim/payload.h"
#include "shim/supervisor.h"

namespace gflow::shim {
namespace {

/// Blocks all signals: they are read from a descriptor. What was inherited as ignored would
/// not be delivered at all, so everything goes back to its default first.
void take_over_signals() {
  for (int number = 1; number < NSIG; ++number) (void)::signal(number, SIG_DFL);
  sigset_t all;
  (void)::sigfillset(&all);
  (void)::sigprocmask(SIG_SETMASK, &all, nullptr);
}

void say(const Fd& status, const attempt::StatusLine& line) {
  (void)write_whole(status.get(), attempt::encode_status(line));  // the daemon may be gone
}

int give_up(const Fd& status, const std::string& why) {
  say(status, attempt::ShimFailed{why});
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

attempt::ExitRecord no_payload(const attempt::Order& order, const std::string& why, int error) {
  attempt::ExitRecord record;
  record.job = order.job;
  record.attempt = order.attempt;
  record.launch_id = order.launch_id;
  record.boot_id = order.boot_id;
  record.reason = attempt::Ending::LaunchFailed;
  record.step = attempt::Step::Fork;
  record.error = error;
  record.started_wall_ms = record.ended_wall_ms = wall_ms();
  record.message = why;
  return record;
}

attempt::ExitRecord run_job(const attempt::Order& order,
                            const AttemptDir& dir,
                            const Fd& status,
                            WaitPoints points) {
  const JobLog log = open_log(order);
  auto payload = start_payload(order, log);
  if (!payload) return no_payload(order, payload.error(), errno);
  Supervisor supervisor(order, std::move(*payload), std::move(points));
  attempt::ExitRecord record = supervisor.run([&](int pid) {
    dir.note_started(pid);
    say(status, attempt::ShimStarted{pid});
  });
  if (record.reason == attempt::Ending::LaunchFailed) {
    add_to_log(log, "the job could not be started: " + record.message);
  }
  return record;
}

}  // namespace

int run_attempt(const std::string& directory, const Fd& status) {
  take_over_signals();
  (void)::setsid();  // fails only if it is one already
  (void)::prctl(PR_SET_CHILD_SUBREAPER, 1);
  (void)write_path("/proc/self/oom_score_adj", "-900");  // only root may, and only some root
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
  store_record(*dir, run_job(*order, *dir, status, std::move(*points)));
  return 0;
}

int probe_cgroups(int count, char** directories) {
  for (int i = 0; i < count; ++i) {
    if (!write_path(std::string(directories[i]) + "/cgroup.procs", "0")) return errno;
  }
  return 0;
}

}  // namespace gflow::shim
