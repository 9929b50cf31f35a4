// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "os/file.h"
#include "runner/core.h"
#include "runner/processes.h"

/// Attempts that should be suspended: another job has their GPUs. A job of the same user can stop
/// its supervisor before that has heard of it, and go on. So it is seen to it that it stands, and
/// one that cannot be made to is ended.
namespace gflow::runner {
namespace {

/// One that runs on is told so often: a machine may be slow.
constexpr int kLooksAtRunning = 3;

/// Where there is a control group it needs no supervisor. That makes it go on.
void freeze(const std::string& cgroup) {
  if (cgroup.empty()) return;
  const auto file = os::open_file(cgroup + "/cgroup.freeze", O_WRONLY);
  if (file) (void)os::write_all(file->get(), "1");  // whether it helped is looked at
}

}  // namespace

/// Before it is told to be. One that is ending, which its supervisor knows first, is let end.
void Runner::Core::expect_suspension(Watched& watched, Time now) {
  if (watched.expected.told()) return;
  freeze(watched.freeze_cgroup);
  watched.ran_on = 0;
  Time from = now;
  const auto limit_at = watched.expected.limit_at();
  if (limit_at && *limit_at <= now) from = std::max(from, *limit_at + watched.expected.grace());
  if (watched.first_ended) {
    from = std::max(from, *watched.first_ended + watched.expected.grace());
  }
  begin_looking(watched, LookFor::Suspension, from);
}

/// As long as it is suspended: who may signal its processes may wake them later, too.
void Runner::Core::look_at_suspension(Watched& watched, Time now) {
  const auto stands = stands_still(watched.shim_pid, watched.freeze_cgroup);
  if (stands && *stands) {
    watched.ran_on = 0;
    return go_on_looking(watched, LookFor::Suspension, now);
  }
  begin_looking(watched, LookFor::Suspension, now);
  if (stands && ++watched.ran_on >= kLooksAtRunning) {
    return kill_with_supervisor(watched, {EndReason::SupervisorDied, kept<Kept::RanOn>()});
  }
  freeze(watched.freeze_cgroup);
  queue(watched, attempt::encode_control(attempt::SuspendJob{}));
}

}  // namespace gflow::runner
