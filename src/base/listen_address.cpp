// SPDX-License-Identifier: Apache-2.0
#include "base/listen_address.h"

#include <arpa/inet.h>
#include <fmt/format.h>

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

bool is_address(int family, const std::string& host) {
  in6_addr bytes{};  // the larger of the two
  return ::inet_pton(family, host.c_str(), &bytes) == 1;
}

bool is_v4_loopback(std::string_view host) {
  return host.starts_with("127.") && is_address(AF_INET, std::string(host));
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

Result<std::vector<ListenAddress>> parse_loopback(std::string_view text) {
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
  if (host.starts_with('[')) return std::vector{ListenAddress{"::1", *port}};
  if (is_v4_loopback(host)) return std::vector{ListenAddress{std::string(host), *port}};
  return std::vector{ListenAddress{"127.0.0.1", *port}, ListenAddress{"::1", *port}};
}

Result<ListenAddress> parse_listen_address(std::string_view text) {
  const auto [host, digits] = parts_of(text);
  const auto port = decimal<std::uint16_t>(digits);
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  const std::string name(in_brackets ? host.substr(1, host.size() - 2) : host);
  if (port && is_address(in_brackets ? AF_INET6 : AF_INET, name)) {
    return ListenAddress{name, *port};
  }
  return fail(
      Code::Usage,
      tr_format("'{}' is not an address of this machine and a port, as 10.0.0.5:8443 or, for "
                "all of them, 0.0.0.0:8443 or [::]:8443",
                printable(text)));
}

std::string to_text(const ListenAddress& address) {
  return address.host.contains(':') ? fmt::format("[{}]:{}", address.host, address.port)
                                    : fmt::format("{}:{}", address.host, address.port);
}

std::string_view host_of(std::string_view host_and_port) {
  const auto [host, port] = parts_of(host_and_port);
  if (!port.empty() && !decimal<std::uint16_t>(port)) return host_and_port;
  return host.ends_with('.') ? host.substr(0, host.size() - 1) : host;
}

bool is_loopback_host(std::string_view host_and_port) {
  const std::string host = to_lower(host_of(host_and_port));
  return host == "localhost" || host == "[::1]" || is_v4_loopback(host);
}

}  // namespace gflow
