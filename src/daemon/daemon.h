// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "base/result.h"
#include "config/gflow_toml.h"
#include "daemon/options.h"
#include "devices/source.h"
#include "os/fd.h"

namespace gflow::daemon {

using config::Config;

/// One gflowd: engine, store, runner, devices and server wired to one loop on one thread.
class Daemon {
 public:
  /// Takes the lock, opens the store, finds the devices, takes over the jobs that run, listens.
  /// Errors: WrongState naming the other daemon's pid if there is one; else what could not be done.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start(Options options);
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  /// Runs until told to stop; jobs keep running. An error means the store could not be written: the
  /// truth is what the next start finds.
  [[nodiscard]] Result<void> run();

 private:
  struct Core;
  explicit Daemon(std::unique_ptr<Core> core);
  /// The rest of start(), once there is a log to say in what went wrong.
  [[nodiscard]] static Result<std::unique_ptr<Daemon>> start_under(
      os::Fd lock, Options options, const Config& config, std::unique_ptr<devices::Source> source);
  std::unique_ptr<Core> core_;
};

}  // namespace gflow::daemon
