// SPDX-License-Identifier: Apache-2.0
#include "base/loopback_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

template <typename Number>
std::optional<Number> decimal(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return {};
  return number;
}

bool is_v4_loopback(std::string_view host) {
  const auto parts = split(host, '.');
  return parts.size() == 4 && parts.front() == "127" &&
         std::ranges::all_of(
             parts, [](std::string_view part) { return decimal<std::uint8_t>(part).has_value(); });
}

struct HostAndPort {
  std::string_view host;  ///< "[::1]" with its brackets
  std::string_view port;  ///< "" if there is none
};

HostAndPort parts_of(std::string_view text) {
  const std::size_t host_end = text.starts_with('[') ? text.find(']') + 1 : text.find(':');
  if (host_end >= text.size() || text[host_end] != ':') return {text, ""};
  return {text.substr(0, host_end), text.substr(host_end + 1)};
}

}  // namespace

Result<std::vector<LoopbackAddress>> parse_loopback(std::string_view text) {
  const auto [host, digits] = parts_of(text);
  const auto port = decimal<std::uint16_t>(digits);
  if (!port || host.empty()) {
    return fail(Code::Usage,
                tr_format("'{}' is not an address and a port, as 127.0.0.1:8000 or [::1]:8000",
                          printable(text)));
  }
  if (!is_loopback_host(host)) {
    return fail(Code::Usage,
                tr_format("'{}' can be reached from other machines: without TLS the API is served "
                          "on 127.0.0.1 or [::1] only; others are served at [api] tls_listen",
                          printable(text)));
  }
  if (host.starts_with('[')) return std::vector{LoopbackAddress{"::1", *port}};
  if (is_v4_loopback(host)) return std::vector{LoopbackAddress{std::string(host), *port}};
  return std::vector{LoopbackAddress{"127.0.0.1", *port}, LoopbackAddress{"::1", *port}};
}

Result<LoopbackAddress> parse_listen_address(std::string_view text) {
  const auto [host, digits] = parts_of(text);
  const auto port = decimal<std::uint16_t>(digits);
  const bool is_v6 =
      host.size() > 3 && host.front() == '[' && host.back() == ']' &&
      host.substr(1, host.size() - 2).find_first_not_of("0123456789abcdefABCDEF:.") ==
          std::string_view::npos;
  if (port && is_v6) return LoopbackAddress{std::string(host.substr(1, host.size() - 2)), *port};
  const auto parts = split(host, '.');
  const bool is_v4 = parts.size() == 4 && std::ranges::all_of(parts, [](std::string_view part) {
                       return decimal<std::uint8_t>(part).has_value();
                     });
  if (port && is_v4) return LoopbackAddress{std::string(host), *port};
  return fail(
      Code::Usage,
      tr_format("'{}' is not an address of this machine and a port, as 10.0.0.5:8443 or, for "
                "all of them, 0.0.0.0:8443 or [::]:8443",
                printable(text)));
}

std::string to_text(const LoopbackAddress& address) {
  return address.host.contains(':') ? fmt::format("[{}]:{}", address.host, address.port)
                                    : fmt::format("{}:{}", address.host, address.port);
}

std::string_view host_of(std::string_view host_and_port) { return parts_of(host_and_port).host; }

bool is_loopback_host(std::string_view host_and_port) {
  const std::string host = to_lower(parts_of(host_and_port).host);
  return host == "localhost" || host == "[::1]" || is_v4_loopback(host);
}

}  // namespace gflow
