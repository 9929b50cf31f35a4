// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "devices/source.h"
#include "os/child.h"

namespace gflow::devices::nvml {

/// A running gflow-gpumon. Nothing here blocks.
class Probe {
 public:
  static Result<Probe> start(const SourceOptions& options);

  void ask();
  struct Heard {
    std::vector<std::string> lines;
    bool over = false;  ///< it ended, or says more than anyone could mean
  };
  [[nodiscard]] Heard hear();

  /// Stops listening: it ends by itself once it is out of the driver.
  void hang_up() { child_.channel.reset(); }
  /// SIGKILL. Only with patience before it: a process killed within a driver call can leave the GPU
  /// wedged (Xid 119, reported for dcgm-exporter).
  void kill() const;
  [[nodiscard]] bool has_ended() const { return os::reap(child_); }

  [[nodiscard]] int channel() const { return child_.channel.get(); }
  [[nodiscard]] int process() const { return child_.process.get(); }

 private:
  explicit Probe(os::Child child) : child_(std::move(child)) {}

  os::Child child_;
  std::string incoming_;
};

}  // namespace gflow::devices::nvml
