// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "api/operation.h"
#include "server/exchange.h"

namespace gflow::server {

/// What a route lets its caller do. Whose jobs may be changed is the engine's decision.
enum class Verb {
  Read,     ///< anyone who may connect
  Inspect,  ///< the same, of what is theirs; operators of what is anybody's. The handler refuses
            ///< the others, as only it knows whose that is
  Submit,   ///< anyone who may connect, in their own name
  Change,   ///< anyone who may connect; the engine refuses jobs of others
  Entrust,  ///< the same with what stands for them, tokens, and with no lesser one; administrators
            ///< with those of all
  Operate,  ///< operators
  Administer,  ///< administrators
};

/// What answers a route, and what it reads of a query.
struct Handler {
  void (*handle)(Exchange exchange);
  std::vector<api::QueryParameter> (*query)();
};

struct Route {
  std::string_view method;
  std::string_view pattern;  ///< a segment "{id}" stands for digits, "{name}" for any
  Verb verb;
  Handler handler;
  const api::Operation& about;  ///< what it takes and answers: no route without
};
/// Every route there is; the first that matches counts.
[[nodiscard]] std::span<const Route> routes();
/// The one a request is for; null if there is none, or it takes another method.
[[nodiscard]] const Route* find_route(std::string_view method, std::string_view path);

/// Which of them a request is for; how many there are where it is for none. HEAD is a GET.
[[nodiscard]] std::size_t route_number(std::string_view method, std::string_view path);

/// Whether it asks nobody who they are: whoever looks after the daemon may have no name here.
[[nodiscard]] bool is_open(std::string_view method, std::string_view path);

/// Whether what it does is seen by nobody else.
[[nodiscard]] bool only_reads(Verb verb);

/// The least scope a token may have for it.
[[nodiscard]] Scope scope_of(Verb verb);

/// Errors: Code::Permission, saying who may.
[[nodiscard]] Result<void> authorize(const Principal& caller, Verb verb);

/// Finds the route, checks that the caller may use it and hands the exchange to its handler;
/// answers 403, 404 or 405 itself.
void dispatch(Exchange exchange);

}  // namespace gflow::server
