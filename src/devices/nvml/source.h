// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "devices/nvml/probe.h"
#include "devices/nvml/report.h"
#include "devices/source.h"
#include "os/fd.h"

namespace gflow::devices::nvml {

/// The GPUs of this machine through a probe process. A reading that is not there at its deadline,
/// or that ends with the probe, is a miss: the probe is left to itself and, after a pause that
/// doubles with each miss, replaced. At the third miss in a row the readings are taken back: see
/// machine_stale(). A driver that comes back is noticed by the next probe.
class NvmlSource final : public Source {
 public:
  /// Waits for the first answer or the first miss.
  static Result<std::unique_ptr<NvmlSource>> open(const SourceOptions& options);
  NvmlSource(SourceOptions options, os::Fd timer, os::Fd ready);
  ~NvmlSource() override;
  NvmlSource(const NvmlSource&) = delete;
  NvmlSource& operator=(const NvmlSource&) = delete;

  [[nodiscard]] const Machine& machine() const override { return machine_; }
  [[nodiscard]] int fd() const override { return ready_.get(); }
  bool poll() override;
  bool refresh() override;
  [[nodiscard]] std::chrono::milliseconds interval() const override { return options_.deadline; }

  /// True once the probe has answered, be it with an error.
  [[nodiscard]] bool has_answered() const { return answered_; }

 private:
  enum class State {
    Idle,    ///< the probe waits for a question
    Asked,   ///< the timer is the deadline
    Paused,  ///< there is no probe; the timer starts the next one
  };

  void start();
  void ask();
  void hear();
  void take(const std::string& line);
  void timer_rang();
  void missed(const std::string& why);
  void leave_probe();
  void pause();
  void set_timer(std::chrono::milliseconds after);
  void follow(int fd);

  SourceOptions options_;
  os::Fd timer_;
  os::Fd ready_;  ///< epoll over the timer, the probe and those that were left
  State state_ = State::Paused;
  std::optional<Probe> probe_;
  std::vector<Probe> left_;  ///< told to end, not ended yet
  Machine machine_;
  int misses_ = 0;     ///< in a row
  bool fresh_ = true;  ///< the probe has not answered yet: it has to initialise the driver
  bool answered_ = false;
};

}  // namespace gflow::devices::nvml
