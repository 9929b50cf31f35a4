// SPDX-License-Identifier: Apache-2.0
#include "runner/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "os/file.h"

namespace gflow::runner {
namespace {

/// SO_REUSEADDR, as servers set it: a port on which only old connections linger is free. Invalid
/// where the machine has none of that family.
Result<os::Fd> reusable_socket(int family) {
  os::Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) return os::errno_error("make a socket");
  const int on = 1;
  if (fd.valid()) (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

Result<bool> can_bind_ipv4(int port) {
  const os::Fd fd = GF_TRY(reusable_socket(AF_INET));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return fd.valid() &&
         ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

/// On IPv6 and on IPv4 at once, which is half the work; on IPv4 alone where the machine has no
/// IPv6.
Result<bool> Ports::can_bind(int port) {
  const os::Fd fd = GF_TRY(reusable_socket(AF_INET6));
  if (!fd.valid()) return can_bind_ipv4(port);
  const int off = 0;  // whatever net.ipv6.bindv6only says
  (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    return true;
  }
  if (errno != EADDRNOTAVAIL) return false;
  return can_bind_ipv4(port);
}

/// A name that is no file's (unix(7), abstract): one network namespace has it, as it has the ports,
/// and it is gone with who has it.
Result<os::Fd> Ports::claim_lane(int lane) {
  os::Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return os::errno_error("make a socket");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name =
      fmt::format("gflow-ports-{}", kFirstPort + lane * static_cast<int>(kLanePorts));
  (void)name.copy(&address.sun_path[1], sizeof address.sun_path - 1);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const bool claimed = ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0;
  if (!claimed) fd.reset();
  return fd;
}

PortBlock ports_in(const std::vector<std::string>& environment) {
  PortBlock block;
  const auto read = [](std::string_view text, std::string_view name, int& number) {
    if (!text.starts_with(name)) return;
    const auto value = parse_number(text.substr(name.size()));
    if (value && *value <= 65535) number = static_cast<int>(*value);
  };
  for (const std::string& variable : environment) {
    read(variable, "GFLOW_PORT_BASE=", block.base);
    read(variable, "GFLOW_PORT_COUNT=", block.count);
  }
  return block.base > 0 && block.count > 0 ? block : PortBlock{};
}

std::size_t Ports::lane_of(int port) {
  return static_cast<std::size_t>(port - kFirstPort) / kLanePorts;
}

Result<bool> Ports::claim_lane_of(int port) {
  Lane& lane = lanes_.at(lane_of(port));
  if (!lane.claim.valid()) lane.claim = GF_TRY(claim_(static_cast<int>(lane_of(port))));
  return lane.claim.valid();
}

void Ports::leave_idle_lanes(std::optional<std::size_t> but) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_.at(i);
    if (!lane.claim.valid() || lane.held > 0 || but == i) continue;
    lane.claim.reset();
    // What another daemon's jobs bind there meanwhile is to be found out.
    for (std::size_t port = 0; port < kLanePorts; ++port) {
      ports_.at(i * kLanePorts + port).was_tried = false;
    }
  }
}

Result<bool> Ports::is_free(int port, Whose lane, Time now) {
  Port& its = ports_.at(static_cast<std::size_t>(port - kFirstPort));
  if (its.holders > 0) return false;
  if (lane == Whose::Ours && !GF_TRY(claim_lane_of(port))) return false;
  if (lane == Whose::Ours && its.was_tried && now - its.found_free < kTrust) return true;
  its.was_tried = GF_TRY(can_bind_(port));
  its.found_free = now;
  return its.was_tried;
}

/// The first port of the block that it cannot have; the one behind it if it can have all.
Result<int> Ports::first_unusable(PortBlock block, Whose lane, Time now) {
  int port = block.base;
  while (port < block.base + block.count && GF_TRY(is_free(port, lane, now))) ++port;
  return port;
}

/// The first usable block that begins in [first, last]; none if there is none.
Result<PortBlock> Ports::find(int count, int first, int last, Whose lane, Time now) {
  PortBlock block{first, count};
  while (block.base <= last && block.base + count - 1 <= kLastPort) {
    const int unusable = GF_TRY(first_unusable(block, lane, now));
    if (unusable == block.base + count) return block;
    block.base = unusable + 1;
  }
  return PortBlock{};
}

Result<PortBlock> Ports::find(int count, Whose lane, Time now) {
  const PortBlock block = GF_TRY(find(count, next_, kLastPort, lane, now));
  if (block.count > 0) return block;
  return find(count, kFirstPort, next_ - 1, lane, now);
}

Result<PortBlock> Ports::find(int count, Time now) {
  PortBlock block;
  if (count > 0) block = GF_TRY(find(count, Whose::Ours, now));
  if (count > 0 && block.count == 0) block = GF_TRY(find(count, Whose::Anybodys, now));
  if (block.count > 0) return block;
  return fail(
      Code::Exhausted,
      fmt::format(
          "no {} consecutive ports are free between {} and {}", count, kFirstPort, kLastPort));
}

Result<PortBlock> Ports::take(int count, Time now) {
  auto block = find(count, now);
  if (!block) {
    leave_idle_lanes();
    return block;
  }
  next_ = block->base + count;
  hold(*block, 1);
  return block;
}

void Ports::note(PortBlock block) { hold(block, 1); }
void Ports::give_back(PortBlock block) { hold(block, -1); }

void Ports::hold(PortBlock block, int change) {
  const int end = std::min(block.base + block.count, kLastPort + 1);
  for (int port = std::max(block.base, kFirstPort); port < end; ++port) {
    Port& its = ports_.at(static_cast<std::size_t>(port - kFirstPort));
    const auto holders = static_cast<std::uint16_t>(std::max(its.holders + change, 0));
    lanes_.at(lane_of(port)).held += holders - its.holders;
    its.holders = holders;
    if (holders > 0) (void)claim_lane_of(port);
  }
  leave_idle_lanes(lane_of(next_));
}

}  // namespace gflow::runner
