// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace gflow {

/// Where a program listens by TCP: at which this machine reaches itself, or others do.
struct ListenAddress {
  std::string host;        ///< "127.0.0.1", "::1", "10.0.0.5"; "0.0.0.0" and "::" are all there are
  std::uint16_t port = 0;  ///< 0: any that is free

  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

/// Reads "127.0.0.1:8000", "[::1]:8000" or "localhost:8000", which is both: programs take either,
/// and whoever had the other one would be taken for this. Errors: Usage, for an address that other
/// machines reach, too.
[[nodiscard]] Result<std::vector<ListenAddress>> parse_loopback(std::string_view text);
/// Reads an address of this machine that others reach: "10.0.0.5:8443", "[2001:db8::5]:8443", and
/// all of them: "0.0.0.0:8443", "[::]:8443". Errors: Usage.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);
/// "127.0.0.1:8000", "[::1]:8000".
[[nodiscard]] std::string to_text(const ListenAddress& address);

/// "lab1" of "lab1:8000" and of "lab1.:8000" (a name of which nothing is to be looked for behind
/// the dot), "[::1]" of "[::1]:8000"; the whole text where no port follows.
[[nodiscard]] std::string_view host_of(std::string_view host_and_port);
/// Whether what a URL names is always this machine: "localhost", "[::1]" or one of 127.0.0.0/8,
/// with a port or without.
[[nodiscard]] bool is_loopback_host(std::string_view host_and_port);

}  // namespace gflow
