// SPDX-License-Identifier: Apache-2.0
#include "server/authenticator.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "base/translate.h"
#include "server/routes.h"
#include "server/web_guard.h"

namespace gflow::server {
namespace {

Principal anonymous() {
  return {.name = "anonymous", .uid = std::nullopt, .projects = {}, .scope = Scope::Read};
}

/// RFC 6750: what is to be shown.
Reply unauthorized(const Error& error) {
  Reply reply = problem(error, 401);
  reply.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"gflow\"");
  reply.hangs_up = true;  // a try costs a connection
  return reply;
}

/// What came, as one line of the log may have it.
std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  return printable(text.substr(0, kMost));
}

std::string asked(const Request& request) {
  return fmt::format("{} {}", shown(request.method), shown(request.path));
}

std::string where_from(const Guest& guest) {
  if (guest.via != Via::Unix) return guest.address;
  return fmt::format("the socket, uid {}, pid {}", guest.peer.uid, guest.peer.pid);
}

/// What only administrators, operators and owners of tokens do, wherever they are.
bool is_delicate(std::string_view path) {
  return path.starts_with("/api/v1/tokens") || path.starts_with("/api/v1/daemon/") ||
         path.starts_with("/api/v1/drain");
}

}  // namespace

std::string tried_by(const Guest& guest) {
  if (guest.via == Via::Tcp) return fmt::format("uid {}", guest.peer.uid);
  const std::string host = guest.address.substr(0, guest.address.rfind(':'));
  if (!host.starts_with('[')) return host;
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  const std::string text = host.substr(1, host.size() - 2);
  if (::inet_pton(AF_INET6, text.c_str(), bytes.data()) != 1) return host;
  constexpr std::size_t kNetwork = 8;
  std::string network = "net ";
  for (std::size_t i = 0; i < kNetwork; ++i) network += fmt::format("{:02x}", bytes.at(i));
  return network;
}

Authenticator::Authenticator(Rules rules, const TokenTable& tokens, Audit audit)
    : rules_(rules), tokens_(tokens), audit_(std::move(audit)), identity_(rules.own_uid) {}

Result<void> Authenticator::may_enter(const Rules& rules, std::uint32_t uid) {
  if (rules.any_user || uid == 0 || uid == rules.own_uid) return {};
  return fail(Code::Permission, "this gflowd serves only the user it runs as");
}

Authenticator::Decision Authenticator::authenticate(const Guest& guest,
                                                    const Request& request,
                                                    Now now) {
  if (guest.via == Via::Unix) return identity_.of(guest.peer);
  if (auto answer = answer_preflight(request)) return std::move(*answer);
  if (request.authorization.empty()) return by_connection(guest, request, now.mono);
  const auto secret = bearer_of(request.authorization);
  if (!secret) {
    return turn_down(guest,
                     request,
                     Error{Code::Permission,
                           tr("the only way to show who you are is 'Authorization: Bearer TOKEN'")},
                     now.mono);
  }
  auto owner = by_token(*secret, now);
  if (!owner) return turn_down(guest, request, owner.error(), now.mono);
  return std::move(*owner);
}

Authenticator::Decision Authenticator::by_connection(const Guest& guest,
                                                     const Request& request,
                                                     MonoTime now) {
  if (request.path == kOpenPath && request.method == "GET") return anonymous();
  if (!page_of(request).empty()) {
    return unauthorized(Error{Code::Permission, tr("a web page has to show a token")});
  }
  if (!guest.certificate.empty()) {
    auto account = by_certificate(guest, now);
    if (!account) return unauthorized(account.error());
    return std::move(*account);
  }
  if (guest.refusal) {
    return guest.is_known ? problem(*guest.refusal) : unauthorized(*guest.refusal);
  }
  return identity_.of_loopback(guest.peer.uid);
}

Result<Principal> Authenticator::by_certificate(const Guest& guest, MonoTime now) {
  const auto uid = accounts_.uid_of(guest.certificate, now);
  if (!uid || *uid == 0) {
    return fail(Code::Permission,
                tr_format("the certificate names '{}', which is no account of this machine that "
                          "may come that way",
                          shown(guest.certificate)));
  }
  GF_CHECK(may_enter(rules_, *uid));
  Principal principal = identity_.of_account(*uid);
  principal.known_by = KnownBy::Certificate;
  principal.credential = guest.certificate;
  return principal;
}

Result<Principal> Authenticator::by_token(std::string_view secret, Now now) {
  const auto token = tokens_.find_by_secret(secret);
  if (!token) {
    return fail(Code::Permission, tr("this token is not known, or was revoked"));
  }
  if (has_expired(*token, now.wall)) {
    return fail(Code::Permission,
                tr_format("token '{}' has expired: make another one with 'gctl token create'",
                          printable(token->name)));
  }
  const std::uint32_t uid = token->owner.uid;
  GF_CHECK(may_enter(rules_, uid));
  if (uid != rules_.own_uid && !accounts_.has(uid, now.mono)) {
    return fail(
        Code::Permission,
        tr_format("token '{}' belongs to an account that is no more", printable(token->name)));
  }
  Principal principal = identity_.of_account(uid);
  principal.role = role_within(token->scope, principal.role);
  principal.known_by = KnownBy::Token;
  principal.scope = token->scope;
  principal.credential = token->name;
  return principal;
}

/// Says so in the log until there are too many: who fills it hides what he does.
Reply Authenticator::turn_down(const Guest& guest,
                               const Request& request,
                               const Error& why,
                               MonoTime now) {
  const auto [wait, is_first] = failed_.count(tried_by(guest), now);
  if (wait.count() == 0) {
    audit_(
        fmt::format("audit: from {}: {}: 401: {}", where_from(guest), asked(request), why.message));
    return unauthorized(why);
  }
  if (is_first) {
    audit_(fmt::format("audit: from {}: too many failed tries, no more of them are logged for {} s",
                       where_from(guest),
                       wait.count()));
  }
  Reply reply = problem(Error{Code::Exhausted, tr("too many failed tries; wait")}, 429);
  reply.headers.emplace_back("Retry-After", fmt::format("{}", wait.count()));
  reply.hangs_up = true;
  return reply;
}

std::string Authenticator::audited(const Guest& guest,
                                   const Principal& caller,
                                   const Request& request) {
  if (request.method == "GET" || request.method == "HEAD") return "";
  const bool is_elsewhere = guest.via == Via::Tls || caller.known_by == KnownBy::Token;
  if (!is_elsewhere && !is_delicate(request.path)) return "";
  const std::string by =
      caller.credential.empty()
          ? std::string(known_by_name(caller.known_by))
          : fmt::format("{} '{}'", known_by_name(caller.known_by), shown(caller.credential));
  return fmt::format(
      "audit: {} ({}) from {}: {}", shown(caller.name), by, where_from(guest), asked(request));
}

void Authenticator::audit(const std::string& what, int status) const {
  audit_(fmt::format("{}: {}", what, status));
}

}  // namespace gflow::server
