// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/port_block.h"

namespace gflow::runner {

/// Where jobs' ports come from. Linux may give these to outgoing connections too, unless
/// ip_local_port_range says otherwise, so each is tried.
constexpr int kFirstPort = 41000;
constexpr int kLastPort = 42999;

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

  std::array<Port, kPorts> ports_{};
  int next_ = kFirstPort;
};

}  // namespace gflow::runner
