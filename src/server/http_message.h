// SPDX-License-Identifier: Apache-2.0
// Includes Beast, which takes long to compile: for session.cpp and what converts for it.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"
#include "os/http_parser.h"
#include "server/exchange.h"

namespace gflow::server {

using HttpParser = os::HttpParser<true>;
using HttpRequest = boost::beast::http::request<boost::beast::http::string_body>;
using HttpHeader = HttpRequest::header_type;
using HttpResponse = boost::beast::http::response<boost::beast::http::string_body>;

constexpr std::uint32_t kMaxHeaderBytes = 64 * 1024;

/// Of a list that came in several lines (RFC 9110, 5.3) makes the one it is.
void join_lists(HttpHeader& header);
/// Errors: Usage for one that may be there once and is there twice, of which others may have taken
/// the other one, and for a condition or a key that is empty: it was meant to be something.
[[nodiscard]] Result<void> check_headers(const HttpHeader& header);
/// What handlers see of it. The body is moved out.
[[nodiscard]] Request request_of(HttpRequest&& message);
/// What it shows of who asks; "" of two of them, of which others may have taken the other one.
[[nodiscard]] std::optional<std::string> authorization_of(const HttpRequest& message);
/// How its answer is to be sent, whether it can be read or not.
[[nodiscard]] Terms terms_of(const HttpRequest& message);
[[nodiscard]] WebHeaders web_headers_of(const HttpRequest& message,
                                        std::shared_ptr<const WebRules> rules);
[[nodiscard]] HttpResponse response_of(Reply reply);
/// The reply to bytes that are no request, or empty if there is nobody to reply to.
[[nodiscard]] std::optional<Reply> reply_to(const boost::system::error_code& error);
/// Whether a body of this transfer coding can be read: what is not understood must not be taken for
/// no body.
[[nodiscard]] bool reads_coding(std::string_view coding);

}  // namespace gflow::server
