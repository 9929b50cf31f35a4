// SPDX-License-Identifier: Apache-2.0
#include "server/http_message.h"

#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <utility>

#include "api/headers.h"
#include "base/translate.h"
#include "server/request_id.h"

namespace gflow::server {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

using Lines = api::RequestHeader::Lines;

/// What it says; "" where it is not there.
std::string text_of(const HttpHeader& header, api::RequestHeaderName name) {
  return std::string(header[name.text()]);
}

std::optional<std::string> text_if_there(const HttpHeader& header, api::RequestHeaderName name) {
  const auto line = header.find(name.text());
  if (line == header.end()) return std::nullopt;
  return std::string(line->value());
}

std::size_t lines_of(const HttpHeader& header, api::RequestHeaderName name) {
  return header.count(name.text());
}

}  // namespace

void join_lists(HttpHeader& header) {
  for (const api::RequestHeader& one : api::kRequestHeaders) {
    if (one.lines != Lines::List || header.count(one.name) < 2) continue;
    std::string all;
    const auto [begin, end] = header.equal_range(one.name);
    for (auto line = begin; line != end; ++line) {
      all += (all.empty() ? "" : ", ") + std::string(line->value());
    }
    header.set(one.name, all);
  }
}

Result<void> check_headers(const HttpHeader& header) {
  for (const api::RequestHeader& one : api::kRequestHeaders) {
    if (one.lines != Lines::Once || header.count(one.name) < 2) continue;
    return fail(Code::Usage, tr_format("the header '{}' is given twice", one.name));
  }
  for (const api::RequestHeader& one : api::kRequestHeaders) {
    if (one.may_be_empty) continue;
    const auto line = header.find(one.name);
    if (line == header.end() || !line->value().empty()) continue;
    return fail(Code::Usage,
                tr_format("the header '{}' is empty: leave it out, or fill it in", one.name));
  }
  return {};
}

HttpResponse response_of(Reply reply) {
  constexpr unsigned kHttp11 = 11;
  HttpResponse response(static_cast<http::status>(reply.status), kHttp11);
  for (const auto& [name, value] : reply.headers) response.insert(name, value);
  if (!reply.content_type.empty()) response.set(http::field::content_type, reply.content_type);
  response.body() = std::move(reply.body);
  const bool has_length = reply.status != 204 && reply.status != 304 && !reply.streamed;
  if (has_length) response.content_length(response.body().size());
  return response;
}

std::optional<Reply> reply_to(const error_code& error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message) return {};
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return problem(Error{Code::Exhausted, tr("the headers are larger than 64 KiB")}, 431);
  }
  if (error == http::error::body_limit) {
    return problem(Error{Code::Exhausted, tr("the body is larger than 16 MiB")}, 413);
  }
  if (error.category() != http::make_error_code(http::error::end_of_stream).category()) return {};
  return problem(Error{Code::Usage, tr_format("not an HTTP request: {}", error.message())});
}

Request request_of(HttpRequest&& message) {
  Request request;
  request.method = std::string(message.method_string());
  request.origin = text_if_there(message, "Origin");
  request.idempotency_key = text_of(message, "Idempotency-Key");
  // Of what it was read from before nothing is known here: then all of it is to be sent. Of a
  // method other than GET a range is none (RFC 9110, 14.2).
  const bool is_get = message.method() == http::verb::get;
  if (is_get && text_of(message, "If-Range").empty()) request.range = text_of(message, "Range");
  request.last_event_id = text_of(message, "Last-Event-ID");
  request.language = text_of(message, "Accept-Language");
  request.authorization = authorization_of(message);
  request.accept = text_of(message, "Accept");
  request.content_type = text_of(message, "Content-Type");
  request.content_encoding = text_of(message, "Content-Encoding");
  request.if_match = text_of(message, "If-Match");
  request.body = std::move(message.body());
  return request;
}

std::optional<std::string> authorization_of(const HttpRequest& message) {
  if (lines_of(message, "Authorization") > 1) return "";
  return text_if_there(message, "Authorization");
}

Terms terms_of(const HttpRequest& message) {
  // Of two of them neither is the one by which it is known elsewhere.
  const bool has_id = lines_of(message, "X-Request-Id") == 1;
  const std::string_view target = message.target();
  return {.method = std::string(message.method_string()),
          .path = std::string(target.substr(0, target.find('?'))),
          .request_id = request_id_of(has_id ? text_of(message, "X-Request-Id") : ""),
          .accept_encoding = text_of(message, "Accept-Encoding"),
          .if_none_match = text_of(message, "If-None-Match")};
}

WebHeaders web_headers_of(const HttpRequest& message, std::shared_ptr<const WebRules> rules) {
  // Of two of them somebody on the way may have taken the other one.
  const bool is_one = lines_of(message, "Host") == 1;
  return {is_one ? text_of(message, "Host") : "",
          text_of(message, "Sec-Fetch-Site"),
          text_of(message, "Content-Type"),
          std::move(rules)};
}

bool reads_coding(std::string_view coding) {
  return coding.empty() || boost::beast::iequals(coding, "chunked");
}

}  // namespace gflow::server
