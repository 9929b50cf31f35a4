// SPDX-License-Identifier: Apache-2.0
#include "server/web_guard.h"

#include <string_view>

#include "base/loopback_address.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::server {
namespace {

bool is_json(std::string_view content_type) {
  return to_lower(trim(content_type.substr(0, content_type.find(';')))) == "application/json";
}

}  // namespace

std::optional<Reply> refuse_of_web(const Request& request) {
  if (!request.web) return std::nullopt;
  const WebHeaders& headers = *request.web;
  constexpr int kMisdirected = 421;
  constexpr int kUnsupportedMedia = 415;
  // Whatever the port: it may be forwarded.
  if (!is_loopback_host(headers.host)) {
    return problem(Error{Code::Usage,
                         tr_format("this is gflowd on localhost, not '{}'",
                                   printable(headers.host.substr(0, 100)))},
                   kMisdirected);
  }
  const std::string_view site = headers.fetch_site;
  if (!site.empty() && site != "none" && site != "same-origin") {
    return problem(Error{Code::Permission, tr("requests of web pages are refused")});
  }
  if (!request.body.empty() && !is_json(headers.content_type)) {
    return problem(Error{Code::Usage,
                         tr_format("the body is '{}' and has to be JSON; say so with the header "
                                   "'Content-Type: application/json'",
                                   printable(headers.content_type.substr(0, 100)))},
                   kUnsupportedMedia);
  }
  return std::nullopt;
}

}  // namespace gflow::server
