// SPDX-License-Identifier: Apache-2.0
// Includes Beast, which takes long to compile: for what reads HTTP.
#pragma once

#include <boost/beast/core/string_type.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/system/error_code.hpp>

namespace gflow::os {

/// Reads a request or an answer, without what comes behind a chunked body: Beast takes that for
/// more of its headers, which nobody may (RFC 9110, 6.5.1), and throws where it is long.
template <bool kIsRequest>
class HttpParser : public boost::beast::http::parser<kIsRequest, boost::beast::http::string_body> {
 private:
  void on_field_impl(boost::beast::http::field name,
                     boost::beast::string_view text,
                     boost::beast::string_view value,
                     boost::system::error_code& /*error*/) override {
    if (!this->is_header_done()) this->get().insert(name, text, value);
  }
};

}  // namespace gflow::os
