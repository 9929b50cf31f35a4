// SPDX-License-Identifier: Apache-2.0
#include "server/web_guard.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>

#include "api/headers.h"
#include "base/listen_address.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/media_types.h"
#include "server/routes.h"

namespace gflow::server {
namespace {

bool is_json(std::string_view content_type) {
  return to_lower(trim(content_type.substr(0, content_type.find(';')))) == "application/json";
}

bool is_in(const std::vector<std::string>& list, const std::string& text) {
  return std::ranges::find(list, text) != list.end();
}

/// "10.0.0.5", "[fe80::1]": no name, so that none was made to lead here.
bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  if (!host.starts_with('[')) return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1;
  if (!host.ends_with(']')) return false;
  return ::inet_pton(AF_INET6, host.substr(1, host.size() - 2).c_str(), bytes.data()) == 1;
}

/// Whatever the port: it may be forwarded.
bool is_this_host(const WebHeaders& web) {
  if (is_loopback_host(web.host)) return true;
  if (!web.rules || !web.rules->is_remote) return false;
  const std::string host = to_lower(std::string(host_of(web.host)));
  return is_address(host) || is_in(web.rules->host_names, host);
}

/// Those of all routes.
std::vector<std::string> methods_of_pages() {
  std::vector<std::string> methods;
  for (const Route& route : routes()) {
    if (!is_in(methods, std::string(route.method))) methods.emplace_back(route.method);
  }
  return methods;
}

/// What they may send.
std::vector<std::string> headers_of_pages() {
  std::vector<std::string> headers;
  for (const api::RequestHeader& header : api::kRequestHeaders) {
    if (header.is_sent_by_pages) headers.emplace_back(header.name);
  }
  return headers;
}

/// What they may read.
std::vector<std::string> headers_for_pages() {
  std::vector<std::string> headers;
  for (const api::AnswerHeader& header : api::kAnswerHeaders) {
    if (header.is_read_by_pages) headers.emplace_back(header.name);
  }
  return headers;
}

}  // namespace

std::string page_of(const Request& request) {
  const bool is_allowed = request.origin && request.web && request.web->rules &&
                          is_in(request.web->rules->origins, *request.origin);
  return is_allowed ? *request.origin : "";
}

std::optional<Reply> answer_preflight(const Request& request) {
  if (request.method != "OPTIONS" || page_of(request).empty()) return std::nullopt;
  if (!is_this_host(*request.web)) return std::nullopt;
  Reply reply = empty_reply();
  reply.headers = {{"Access-Control-Allow-Methods", join(methods_of_pages(), ", ")},
                   {"Access-Control-Allow-Headers", join(headers_of_pages(), ", ")},
                   {"Access-Control-Max-Age", "600"}};
  return reply;
}

void allow_page(const std::string& page, Reply& reply) {
  if (page.empty()) return;
  reply.headers.emplace_back("Access-Control-Allow-Origin", page);
  reply.headers.emplace_back("Access-Control-Expose-Headers", join(headers_for_pages(), ", "));
  reply.headers.emplace_back("Vary", "Origin");
}

std::optional<Reply> refuse_of_web(const Request& request) {
  const bool is_allowed = !page_of(request).empty();
  if (request.origin && !is_allowed) {
    return problem(Error{Code::Permission,
                         tr("requests of web pages are refused: they carry an Origin header")});
  }
  if (!request.web) return std::nullopt;
  const WebHeaders& headers = *request.web;
  if (headers.host.empty()) {
    return problem(Error{Code::Usage, tr("the request needs one header Host, and only one")});
  }
  constexpr int kMisdirected = 421;
  if (!is_this_host(headers)) {
    const std::string asked = printable(headers.host.substr(0, 100));
    const bool is_remote = headers.rules && headers.rules->is_remote;
    return problem(
        Error{Code::Usage,
              is_remote ? tr_format("this gflowd is not called '{}': add the name to [api] "
                                    "host_names",
                                    asked)
                        : tr_format("this is gflowd on localhost, not '{}'", asked)},
        kMisdirected);
  }
  const std::string_view site = headers.fetch_site;
  if (!is_allowed && !site.empty() && site != "none" && site != "same-origin") {
    return problem(Error{Code::Permission, tr("requests of web pages are refused")});
  }
  if (!request.body.empty() && !is_json(headers.content_type)) {
    return refusal_of_type(headers.content_type);
  }
  return std::nullopt;
}

}  // namespace gflow::server
