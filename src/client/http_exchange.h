// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gflow::client {

struct HttpRequest {
  std::string method;
  std::string target;
  std::string body;
  std::string idempotency_key;
  std::string language = {};  ///< what sentences in the answer are wanted in; "" is English
  std::string range = {};     ///< which bytes, "bytes=-100"; "" is all
  /// Is given what a 200 carries, as it comes, in place of HttpResponse::body and however long it
  /// is; false breaks the exchange off.
  std::function<bool(std::string_view)> take = {};
};

struct HttpResponse {
  int status = 0;
  std::string body;
  std::string content_range;  ///< which bytes these are, "bytes 0-99/200"
};

/// How long a server may be silent.
struct Silence {
  std::chrono::seconds most{90};  ///< Timeout after that
  std::chrono::seconds usual{2};  ///< `tell` once after that
  /// Whose silence it is, as a sentence; may be empty.
  std::function<void(const std::string&)> tell = {};
};

/// `socket_path` may be the server() of a remote. Connects, asks, reads the whole answer, hangs up.
/// A connection over a unix socket costs less than finding out whether an old one still works.
/// Errors: Unreachable if nobody listens or the connection breaks before the whole answer is there;
/// Permission; Timeout if nothing comes for as long as `silence.most`.
[[nodiscard]] Result<HttpResponse> exchange(const std::string& socket_path,
                                            const HttpRequest& request,
                                            const Silence& silence);

}  // namespace gflow::client
