// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/service.h"

namespace gflow::server {

/// What handlers see of an HTTP request.
struct Request {
  std::string method;
  std::string path;   ///< without the query
  std::string query;  ///< as it came, without the "?"
  std::optional<std::string> origin;
  std::string idempotency_key;
  std::string body;
};

/// What goes back.
struct Reply {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
};
[[nodiscard]] Reply json_reply(std::string body);
[[nodiscard]] Reply empty_reply();
[[nodiscard]] Reply problem(const Error& error);
[[nodiscard]] Reply problem(const Error& error, int status);

/// One request and the way to answer it. `respond` is called once, now or from a later turn of the
/// loop; the client may be gone by then.
struct Exchange {
  Service& service;
  Caller caller;
  Request request;
  std::function<void(Reply)> respond;
  std::string id;  ///< what stands where the route has "{id}": digits
};

}  // namespace gflow::server
