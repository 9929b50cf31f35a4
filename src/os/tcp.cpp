// SPDX-License-Identifier: Apache-2.0
#include "os/tcp.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/translate.h"
#include "os/file.h"

namespace gflow::os {
namespace {

/// An address as the socket calls take it.
struct Name {
  sockaddr_storage bytes{};
  socklen_t size = sizeof(sockaddr_storage);

  [[nodiscard]] sockaddr* raw() { return reinterpret_cast<sockaddr*>(&bytes); }  // NOLINT
  [[nodiscard]] const sockaddr_in& v4() const {
    return reinterpret_cast<const sockaddr_in&>(bytes);  // NOLINT: told by the family
  }
  [[nodiscard]] const sockaddr_in6& v6() const {
    return reinterpret_cast<const sockaddr_in6&>(bytes);  // NOLINT: the same
  }
  [[nodiscard]] bool is_v6() const { return bytes.ss_family == AF_INET6; }
  [[nodiscard]] in_port_t port() const { return is_v6() ? v6().sin6_port : v4().sin_port; }
};

bool is_v6(const ListenAddress& address) { return address.host.contains(':'); }

Name name_of(const ListenAddress& address) {
  Name name;
  if (is_v6(address)) {
    auto& its = reinterpret_cast<sockaddr_in6&>(name.bytes);  // NOLINT
    its.sin6_family = AF_INET6;
    (void)::inet_pton(AF_INET6, address.host.c_str(), &its.sin6_addr);  // was read by it
    its.sin6_port = htons(address.port);
    name.size = sizeof its;
  } else {
    auto& its = reinterpret_cast<sockaddr_in&>(name.bytes);  // NOLINT
    its.sin_family = AF_INET;
    (void)::inet_pton(AF_INET, address.host.c_str(), &its.sin_addr);  // was read by it
    its.sin_port = htons(address.port);
    name.size = sizeof its;
  }
  return name;
}

/// Of IPv4 within IPv6 (RFC 4291, 2.5.5.2), as a socket has it that listens for both: of IPv4.
void unmap(Name& name) {
  if (!name.is_v6() || !IN6_IS_ADDR_V4MAPPED(&name.v6().sin6_addr)) return;
  constexpr std::size_t kAt = 12;
  sockaddr_in plain{};
  plain.sin_family = AF_INET;
  plain.sin_port = name.port();
  std::memcpy(&plain.sin_addr, name.v6().sin6_addr.s6_addr + kAt, sizeof plain.sin_addr);
  name = {};
  std::memcpy(&name.bytes, &plain, sizeof plain);
  name.size = sizeof plain;
}

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 what{};
};

/// Of the socket whose other end `ours` and `theirs` name.
Question question_of(const Name& ours, const Name& theirs) {
  Question question;
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  inet_diag_req_v2& what = question.what;
  what.sdiag_family = static_cast<__u8>(theirs.bytes.ss_family);
  what.sdiag_protocol = IPPROTO_TCP;
  what.idiag_states = ~0U;
  what.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  what.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  what.id.idiag_sport = theirs.port();
  what.id.idiag_dport = ours.port();
  if (theirs.is_v6()) {
    std::memcpy(what.id.idiag_src, &theirs.v6().sin6_addr, sizeof(in6_addr));
    std::memcpy(what.id.idiag_dst, &ours.v6().sin6_addr, sizeof(in6_addr));
  } else {
    std::memcpy(what.id.idiag_src, &theirs.v4().sin_addr, sizeof(in_addr));
    std::memcpy(what.id.idiag_dst, &ours.v4().sin_addr, sizeof(in_addr));
  }
  return question;
}

std::unexpected<Error> not_known() {
  // Shown to who asks, in their language, once that is known.
  return fail(Code::NotFound, tr_later("the kernel does not tell whose this connection is"));
}

/// Whether it is the very socket asked for, which a process has. The kernel answers with whatever
/// such a packet would reach: with one that listens at that address where the connection is no
/// more. And it tells uid 0, root's, of one that is closed and waits to be forgotten.
bool is_the_one(const inet_diag_msg& found, const inet_diag_sockid& wanted) {
  const bool is_open = found.idiag_state == TCP_ESTABLISHED || found.idiag_state == TCP_FIN_WAIT1 ||
                       found.idiag_state == TCP_FIN_WAIT2;
  return is_open && found.idiag_inode != 0 && found.id.idiag_sport == wanted.idiag_sport &&
         found.id.idiag_dport == wanted.idiag_dport &&
         std::memcmp(found.id.idiag_src, wanted.idiag_src, sizeof wanted.idiag_src) == 0 &&
         std::memcmp(found.id.idiag_dst, wanted.idiag_dst, sizeof wanted.idiag_dst) == 0;
}

/// What the kernel answers: its uid, if a process has that socket.
Result<std::uint32_t> ask_kernel(const Question& question) {
  const Fd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  if (!netlink.valid()) return errno_error("ask whose a connection is");
  if (::send(netlink.get(), &question, sizeof question, 0) != sizeof question) {
    return errno_error("ask whose a connection is");
  }
  struct {
    nlmsghdr header;
    inet_diag_msg socket;
    std::array<char, 4096> rest;
  } answer{};
  const ssize_t got = ::recv(netlink.get(), &answer, sizeof answer, 0);
  if (got < 0) return errno_error("learn whose a connection is");
  constexpr auto kWhole = static_cast<ssize_t>(sizeof(nlmsghdr) + sizeof(inet_diag_msg));
  if (got < kWhole || answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY) return not_known();
  if (!is_the_one(answer.socket, question.what.id)) return not_known();
  return answer.socket.idiag_uid;
}

std::unexpected<Error> cannot_listen(const std::string& text) {
  const bool has_none = errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT;
  auto failure = errno_error("listen at", text);
  if (!has_none) return failure;
  return fail(Code::NotFound, std::move(failure).error().message);
}

}  // namespace

Result<Fd> listen_tcp(ListenAddress& address) {
  const std::string text = to_text(address);
  Name name = name_of(address);
  Fd socket(
      ::socket(name.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP));
  if (!socket.valid()) return cannot_listen(text);
  const int on =
      1;  // not kept from it by connections of the daemon before that are still forgotten
  (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(socket.get(), name.raw(), name.size) != 0) return cannot_listen(text);
  // Whoever finds no place is not told to wait, as at a unix socket, but asks again a second later.
  constexpr int kQueued = 1024;
  if (::listen(socket.get(), kQueued) != 0) return errno_error("listen at", text);
  Name got;
  if (::getsockname(socket.get(), got.raw(), &got.size) != 0) return errno_error("look at", text);
  address.port = ntohs(got.port());
  return socket;
}

Result<std::uint32_t> owner_of_other_end(int socket) {
  Name ours;
  Name theirs;
  if (::getsockname(socket, ours.raw(), &ours.size) != 0 ||
      ::getpeername(socket, theirs.raw(), &theirs.size) != 0) {
    return not_known();
  }
  unmap(ours);
  unmap(theirs);
  const std::uint32_t uid = GF_TRY(ask_kernel(question_of(ours, theirs)));
  // One that was reset meanwhile may have left its addresses to another.
  Name still;
  if (::getpeername(socket, still.raw(), &still.size) != 0) return not_known();
  return uid;
}

std::string address_of_other_end(int socket) {
  Name theirs;
  if (::getpeername(socket, theirs.raw(), &theirs.size) != 0) return "";
  unmap(theirs);
  std::array<char, INET6_ADDRSTRLEN> host{};
  const void* bytes = theirs.is_v6() ? static_cast<const void*>(&theirs.v6().sin6_addr)
                                     : static_cast<const void*>(&theirs.v4().sin_addr);
  if (::inet_ntop(theirs.bytes.ss_family, bytes, host.data(), host.size()) == nullptr) return "";
  return to_text(ListenAddress{host.data(), ntohs(theirs.port())});
}

bool is_unsent(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

}  // namespace gflow::os
