// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attempt/control.h"
#include "attempt/order.h"
#include "base/result.h"
#include "core/gpu_isolation.h"
#include "core/job.h"
#include "os/child.h"
#include "os/fd.h"
#include "runner/attempt_files.h"
#include "runner/expected_end.h"
#include "runner/processes.h"

namespace gflow::runner {

/// The end an attempt is to have that was stopped before a shim claimed it.
struct RevokedFor {
  EndReason reason = EndReason::Cancelled;
};

/// What the daemon knows of an attempt it takes over.
struct Adopting {
  std::string boot_id;
  bool started = false;
};

/// What an attempt is looked at for when its supervisor is silent.
enum class LookFor : std::uint8_t {
  Start,       ///< it was launched, and is not known to run
  End,         ///< it should be over
  Suspension,  ///< it should be suspended
  Remains,     ///< its first process has ended
  Parking,     ///< what became of its GPU memory is not done
  Wanted,      ///< it lends its GPU, and wants it back
};
inline constexpr std::size_t kLooks = 6;

/// When that is, and how long after it the next one.
struct Look {
  std::optional<ExpectedEnd::Clock::time_point> at{};
  std::chrono::milliseconds pause{};
};

/// An end that is not its supervisor's to tell.
struct KilledFor {
  EndReason reason = EndReason::SupervisorDied;
  std::string message;
};

/// Where the GPU memory of an attempt is to be: what AttemptFiles::park_record() says it is, and a
/// gflow-park that brings the one to the other.
struct ParkingJob {
  bool stands = false;  ///< it is to be suspended, else to go on
  bool lends = false;   ///< it runs on while its GPU memory is away
  os::Fd wanted{};      ///< readable once it wants it back; none where that is known, or not to be
  /// Of one that is to be suspended: so much of it may be taken to host memory; 0: it keeps it.
  Memory most{};
  std::optional<GpuMove> move{};     ///< to another GPU, instead of where it was
  std::optional<os::Child> child{};  ///< at work
  bool takes = false;                ///< what that does: else it gives back
  bool is_fresh = false;             ///< how it stood was known when that was started
  int unclear = 0;                   ///< so often in a row it could not tell what became of it
  std::string refused{};             ///< why it cannot be parked: what was taken is given back
  bool is_its_own = true;            ///< that is so for the rest of the attempt
  std::string trouble{};             ///< why that is not done, while it is not
};

/// An attempt the runner watches until it reports that it is gone.
struct Watched {
  JobId job;
  int attempt = 0;
  AttemptFiles files;
  std::uint64_t serial = 0;  ///< names it in what epoll returns
  int shim_pid = 0;
  os::Fd shim{};                     ///< pidfd; none once it has ended, or while none can be had
  os::Fd status{};                   ///< its status pipe, while it is open and ours
  std::string status_text{};         ///< received, not yet a whole line
  std::optional<Error> shim_said{};  ///< why it gave up, if it did
  int killed_by = 0;                 ///< the signal, once it has ended by one
  std::optional<RevokedFor> revoked{};
  std::vector<attempt::ControlSignal> unsent{};  ///< the kernel had no room to queue them
  std::vector<os::Fd> survivors{};               ///< processes left when the shim was killed
  os::Fd events{};                               ///< cgroup.events, to see the last of them go
  Traces traces{};
  std::string kill_cgroup{};                         ///< "": none
  std::string freeze_cgroup{};                       ///< "": none
  GpuIsolation isolation = GpuIsolation::None;       ///< what keeps it from GPUs of others
  bool started = false;                              ///< its program is known to have run
  std::chrono::steady_clock::time_point launched{};  ///< by this daemon
  ExpectedEnd expected{};
  std::array<Look, kLooks> looks{};
  bool told_to_kill = false;  ///< at the end of its grace, its supervisor being stopped
  int ran_on = 0;             ///< so many looks in a row, though it should be suspended
  ParkingJob parking{};
  int first_pid = 0;       ///< of its first process; 0: not known
  os::Fd first_process{};  ///< pidfd; none once it has ended, or where it is not known
  /// When that ended, by what this daemon saw.
  std::optional<ExpectedEnd::Clock::time_point> first_ended{};
  bool told_to_go_on = false;             ///< its supervisor, since then
  std::optional<KilledFor> killed_for{};  ///< its supervisor was, with the job
  /// Why it is not known how it stands. It is looked at again until it is.
  std::string doubt{};
  /// Why its launch was taken back: its supervisor was to be started anew. It is being killed.
  std::string launch_revoked{};
  /// Why it is still being launched, if that takes too long. It goes with the launch.
  std::string launch_trouble{};
  /// Of one whose standing was not known at the start: as adopt() is given it.
  std::optional<Adopting> adopting{};
};

}  // namespace gflow::runner
