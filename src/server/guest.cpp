// SPDX-License-Identifier: Apache-2.0
#include "server/guest.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

namespace gflow::server {

std::string counted_as(const Guest& guest) {
  if (guest.via != Via::Tls) return fmt::format("uid {}", guest.peer.uid);
  if (guest.local_uid) return fmt::format("uid {} over TLS", *guest.local_uid);
  const std::string host = guest.address.substr(0, guest.address.rfind(':'));
  if (!host.starts_with('[')) return host.starts_with("127.") ? "127.0.0.0/8" : host;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const std::string text = host.substr(1, host.size() - 2);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1) return host;
  constexpr std::size_t kNetwork = 8;
  std::string network = "net ";
  for (std::size_t i = 0; i < kNetwork; ++i) network += fmt::format("{:02x}", bytes.at(i));
  return network;
}

}  // namespace gflow::server
