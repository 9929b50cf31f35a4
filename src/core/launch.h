// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/device_filter.h"
#include "base/memory.h"
#include "base/share.h"
#include "core/job.h"
#include "core/machine.h"

namespace gflow {

/// What an attempt was granted of one device.
struct DeviceGrant {
  int index = 0;       ///< on its node
  std::string uuid;    ///< "" if the source of devices does not tell
  std::string vendor;  ///< lower case; "" if not known
  Share share;         ///< of its compute; the whole for turns, which take none from each other
  Share share_limit;   ///< the most of its compute; 0: `share`
  Memory memory{};     ///< of its memory, guaranteed; 0: none was set aside

  friend bool operator==(const DeviceGrant&, const DeviceGrant&) = default;
};

/// What an attempt may not take more of on its node.
struct LaunchLimits {
  int cpus = 0;     ///< 0: not limited
  Memory memory{};  ///< of the host; 0: not limited

  friend bool operator==(const LaunchLimits&, const LaunchLimits&) = default;
};

/// What the engine granted an attempt, and where: all that whoever runs attempts on that node
/// needs. Enforcement goes by this, not by the environment.
struct LaunchOrder {
  JobId job;
  int attempt = 0;
  std::string node;
  User user;                         ///< run as this user
  std::string work_dir;              ///< absolute
  std::vector<DeviceGrant> devices;  ///< ascending by index
  GpuMode mode = GpuMode::Whole;     ///< of all of them; means nothing without devices
  /// It may be asked to lend its GPU while it is idle: when a program of it wants it back is to be
  /// known.
  bool watches = false;
  bool only_holds = false;  ///< an allocation: who uses the devices is no process of the attempt
  /// Device nodes its processes are kept from; empty: from none.
  std::optional<DeviceFilter> filter{};
  std::vector<int> cpus;                           ///< run on these only; empty: on any
  std::optional<std::chrono::seconds> time_limit;  ///< from its start; empty: none
  std::chrono::seconds grace{30};                  ///< between SIGTERM and SIGKILL
  LaunchLimits limits;
  /// What the job is told of this: "NAME=value" sets a variable, "NAME" alone takes it away. On top
  /// of the payload's.
  std::vector<std::string> environment;
  /// What is run. The engine never reads it and leaves it empty; it is put in after the commit.
  Payload payload;

  friend bool operator==(const LaunchOrder&, const LaunchOrder&) = default;
};

/// The variables of LaunchOrder::environment for an attempt on this node, as docs/environment.md
/// lists them; what only the node knows (ports, paths) is added there.
[[nodiscard]] std::vector<std::string> launch_environment(const Job& job,
                                                          const Attempt& attempt,
                                                          const Machine& machine);
/// `environment` with the changes of an order made; the last of several values of a name counts.
[[nodiscard]] std::vector<std::string> changed_environment(
    const std::vector<std::string>& environment, const std::vector<std::string>& changes);

}  // namespace gflow
