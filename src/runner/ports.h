// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "base/result.h"

namespace gflow::runner {

/// Consecutive TCP ports.
struct PortBlock {
  int base = 0;
  int count = 0;
  friend bool operator==(const PortBlock&, const PortBlock&) = default;
};

/// Where jobs' ports come from. Linux may give these to outgoing connections too, unless
/// ip_local_port_range says otherwise, so each is tried.
constexpr int kFirstPort = 41000;
constexpr int kLastPort = 42999;

/// The ports a job was given, by its environment; none if it was given none.
[[nodiscard]] PortBlock ports_in(const std::vector<std::string>& environment);

/// The first block of `count` ports that can be bound now, on IPv4 and on IPv6 where there is one,
/// and meets none of `taken` (blocks of running jobs, which may not have bound theirs yet).
/// Errors: Exhausted if there is none.
[[nodiscard]] Result<PortBlock> find_ports(int count, const std::vector<PortBlock>& taken);

}  // namespace gflow::runner
