// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "core/port_block.h"
#include "os/fd.h"

namespace gflow::runner {

/// Where jobs' ports come from: below those that Linux gives to outgoing connections (32768 on, by
/// ip_local_port_range), of which thousands may linger and cannot be bound. Each is tried.
constexpr int kFirstPort = 23000;
constexpr int kLastPort = 24999;

/// The ports a job was given, by its environment; none if it was given none.
[[nodiscard]] PortBlock ports_in(const std::vector<std::string>& environment);

/// Which ports jobs have. The ports are in lanes, each of one daemon at a time: several daemons of
/// a machine, of people who have one of their own, give none twice. One thread owns it.
class Ports {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// A port that could be bound is not tried again for so long, as trying costs more than all else
  /// that is done for a short job. Whoever is given one may find it taken anyway: it is bound long
  /// after it was tried.
  static constexpr std::chrono::seconds kTrust{10};
  /// Whether a port can be bound now. Errors: what keeps it from being tried.
  using Probe = std::function<Result<bool>(int port)>;
  /// What keeps other daemons out of a lane while it is open; invalid if one of them has it.
  /// Errors: what keeps it from being tried.
  using Claim = std::function<Result<os::Fd>(int lane)>;

  /// Of this machine.
  [[nodiscard]] static Result<bool> can_bind(int port);
  [[nodiscard]] static Result<os::Fd> claim_lane(int lane);

  explicit Ports(Probe probe = can_bind, Claim claim = claim_lane)
      : can_bind_(std::move(probe)), claim_(std::move(claim)) {}

  /// The next block of `count` ports behind the one given last, from the first again behind the
  /// last, that nobody has and that can be bound, on IPv4 and on IPv6 where there is one. So one
  /// that turns out to be taken is not given again soon. Of another daemon's lane only if there is
  /// none else.
  /// Errors: Exhausted if there is none; those of trying, which end the search.
  [[nodiscard]] Result<PortBlock> take(int count, Time now);
  /// A block that a job was given before.
  void note(PortBlock block);
  void give_back(PortBlock block);

 private:
  static constexpr std::size_t kPorts = kLastPort - kFirstPort + 1;
  static constexpr std::size_t kLanePorts = 40;
  static_assert(kPorts % kLanePorts == 0);
  struct Port {
    std::uint16_t holders = 0;  ///< jobs; more than one only by what earlier daemons gave
    Time found_free{};
    bool was_tried = false;
  };
  struct Lane {
    os::Fd claim;
    int held = 0;  ///< ports, by jobs
  };
  enum class Whose { Ours, Anybodys };
  [[nodiscard]] static std::size_t lane_of(int port);
  [[nodiscard]] Result<bool> claim_lane_of(int port);
  /// All of which no job has ports, but this one.
  void leave_idle_lanes(std::optional<std::size_t> but = {});
  [[nodiscard]] Result<bool> is_free(int port, Whose lane, Time now);
  [[nodiscard]] Result<int> first_unusable(PortBlock block, Whose lane, Time now);
  [[nodiscard]] Result<PortBlock> find(int count, int first, int last, Whose lane, Time now);
  [[nodiscard]] Result<PortBlock> find(int count, Whose lane, Time now);
  [[nodiscard]] Result<PortBlock> find(int count, Time now);
  void hold(PortBlock block, int change);

  Probe can_bind_;
  Claim claim_;
  std::array<Port, kPorts> ports_{};
  std::array<Lane, kPorts / kLanePorts> lanes_{};
  int next_ = kFirstPort;
};

}  // namespace gflow::runner
