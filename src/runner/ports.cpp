// SPDX-License-Identifier: Apache-2.0
#include "runner/ports.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "os/fd.h"

namespace gflow::runner {
namespace {

/// SO_REUSEADDR, as servers set it: a port on which only old connections linger is free.
os::Fd reusable_socket(int family) {
  os::Fd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd.valid()) (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd;
}

bool can_bind_ipv4(int port) {
  const os::Fd fd = reusable_socket(AF_INET);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  return fd.valid() &&
         ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool can_bind_ipv6(int port) {
  const os::Fd fd = reusable_socket(AF_INET6);
  if (!fd.valid()) return true;  // this machine has none
  const int on = 1;
  (void)::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EADDRNOTAVAIL;
}

/// The first port from `base` on that the block cannot have; base + count if it can have all.
int first_unusable(PortBlock block, const std::vector<PortBlock>& taken) {
  for (int port = block.base; port < block.base + block.count; ++port) {
    const bool is_taken = std::ranges::any_of(taken, [port](const PortBlock& other) {
      return port >= other.base && port < other.base + other.count;
    });
    if (is_taken || !can_bind_ipv4(port) || !can_bind_ipv6(port)) return port;
  }
  return block.base + block.count;
}

}  // namespace

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

Result<PortBlock> find_ports(int count, const std::vector<PortBlock>& taken) {
  PortBlock block{kFirstPort, count};
  while (count > 0 && block.base + count - 1 <= kLastPort) {
    const int unusable = first_unusable(block, taken);
    if (unusable == block.base + count) return block;
    block.base = unusable + 1;
  }
  return fail(
      Code::Exhausted,
      fmt::format(
          "no {} consecutive ports are free between {} and {}", count, kFirstPort, kLastPort));
}

}  // namespace gflow::runner
