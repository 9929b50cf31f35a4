// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/port_block.h"

namespace gflow::runner {

/// Where jobs' ports come from: below those that Linux gives to outgoing connections (32768 on, by
/// ip_local_port_range), of which thousands may linger and cannot be bound. Each is tried.
constexpr int kFirstPort = 23000;
constexpr int kLastPort = 24999;

/// The ports a job was given, by its environment; none if it was given none.
[[nodiscard]] PortBlock ports_in(const std::vector<std::string>& environment);

/// Which ports jobs have. One thread owns it.
class Ports {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A port that could be bound is not tried again for so long, as trying costs more than all else
  /// that is done for a short job. Whoever is given one may find it taken anyway: it is bound long
  /// after it was tried.
  static constexpr std::chrono::seconds kTrust{10};
  /// Whether a port can be bound now.
  using Probe = std::function<bool(int port)>;

  /// Of this machine.
  Ports();
  explicit Ports(Probe can_bind) : can_bind_(std::move(can_bind)) {}

  /// The next block of `count` ports behind the one given last, from the first again behind the
  /// last, that nobody has and that can be bound, on IPv4 and on IPv6 where there is one. So one
  /// that turns out to be taken is not given again soon.
  /// Errors: Exhausted if there is none.
  [[nodiscard]] Result<PortBlock> take(int count, Time now);
  /// A block that a job was given before.
  void note(PortBlock block);
  void give_back(PortBlock block);

 private:
  static constexpr std::size_t kPorts = kLastPort - kFirstPort + 1;
  struct Port {
    std::uint16_t holders = 0;  ///< jobs; more than one only by what earlier daemons gave
    Time found_free{};
    bool was_tried = false;
  };
  [[nodiscard]] bool is_free(int port, Time now);
  [[nodiscard]] int first_unusable(PortBlock block, Time now);
  [[nodiscard]] PortBlock find(int count, int first, int last, Time now);
  void hold(PortBlock block, int change);

  Probe can_bind_;
  std::array<Port, kPorts> ports_{};
  int next_ = kFirstPort;
};

}  // namespace gflow::runner
