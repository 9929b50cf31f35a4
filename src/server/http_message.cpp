// SPDX-License-Identifier: Apache-2.0
#include "server/http_message.h"

#include <array>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/translate.h"
#include "server/request_id.h"

namespace gflow::server {

namespace http = boost::beast::http;
using boost::system::error_code;

namespace {

constexpr std::array kLists{http::field::accept,
                            http::field::accept_encoding,
                            http::field::accept_language,
                            http::field::content_encoding,
                            http::field::if_match,
                            http::field::if_none_match};
// Host and Authorization have answers of their own.
constexpr std::array<std::string_view, 8> kThereOnce{"Content-Type",
                                                     "Idempotency-Key",
                                                     "If-Range",
                                                     "Last-Event-ID",
                                                     "Origin",
                                                     "Range",
                                                     "Sec-Fetch-Site",
                                                     "X-Request-Id"};
constexpr std::array<std::string_view, 2> kNeverEmpty{"Idempotency-Key", "If-Match"};

}  // namespace

void join_lists(HttpHeader& header) {
  for (const http::field name : kLists) {
    if (header.count(name) < 2) continue;
    std::string all;
    const auto [begin, end] = header.equal_range(name);
    for (auto line = begin; line != end; ++line) {
      all += (all.empty() ? "" : ", ") + std::string(line->value());
    }
    header.set(name, all);
  }
}

Result<void> check_headers(const HttpHeader& header) {
  for (const std::string_view name : kThereOnce) {
    if (header.count(name) < 2) continue;
    return fail(Code::Usage, tr_format("the header '{}' is given twice", name));
  }
  for (const std::string_view name : kNeverEmpty) {
    const auto line = header.find(name);
    if (line == header.end() || !line->value().empty()) continue;
    return fail(Code::Usage,
                tr_format("the header '{}' is empty: leave it out, or fill it in", name));
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
  if (const auto origin = message.find(http::field::origin); origin != message.end()) {
    request.origin = std::string(origin->value());
  }
  request.idempotency_key = std::string(message["Idempotency-Key"]);
  // Of what it was read from before nothing is known here: then all of it is to be sent. Of a
  // method other than GET a range is none (RFC 9110, 14.2).
  const bool is_get = message.method() == http::verb::get;
  if (is_get && message["If-Range"].empty())
    request.range = std::string(message[http::field::range]);
  request.last_event_id = std::string(message["Last-Event-ID"]);
  request.language = std::string(message[http::field::accept_language]);
  request.authorization = authorization_of(message);
  request.accept = std::string(message[http::field::accept]);
  request.content_type = std::string(message[http::field::content_type]);
  request.content_encoding = std::string(message[http::field::content_encoding]);
  request.if_match = std::string(message[http::field::if_match]);
  request.body = std::move(message.body());
  return request;
}

std::optional<std::string> authorization_of(const HttpRequest& message) {
  const std::size_t count = message.count(http::field::authorization);
  if (count == 0) return std::nullopt;
  return count == 1 ? std::string(message[http::field::authorization]) : "";
}

Terms terms_of(const HttpRequest& message) {
  // Of two of them neither is the one by which it is known elsewhere.
  const bool has_id = message.count("X-Request-Id") == 1;
  const std::string_view target = message.target();
  return {.method = std::string(message.method_string()),
          .path = std::string(target.substr(0, target.find('?'))),
          .request_id = request_id_of(has_id ? message["X-Request-Id"] : ""),
          .accept_encoding = std::string(message[http::field::accept_encoding]),
          .if_none_match = std::string(message[http::field::if_none_match])};
}

WebHeaders web_headers_of(const HttpRequest& message, std::shared_ptr<const WebRules> rules) {
  // Of two of them somebody on the way may have taken the other one.
  const bool is_one = message.count(http::field::host) == 1;
  return {is_one ? std::string(message[http::field::host]) : "",
          std::string(message["Sec-Fetch-Site"]),
          std::string(message[http::field::content_type]),
          std::move(rules)};
}

bool reads_coding(std::string_view coding) {
  return coding.empty() || boost::beast::iequals(coding, "chunked");
}

}  // namespace gflow::server
