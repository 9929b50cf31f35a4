// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/json_writer.h"
#include "core/description.h"

/// What a route takes and answers, told once: the OpenAPI document, the page at /docs and the check
/// of a query are made from it. Sentences are marked by tr_later() and shown in the reader's
/// language.
namespace gflow::api {

/// A parameter of a query. What is read of it is the handler's; its name is checked before.
struct QueryParameter {
  enum class Type { Text, Number, Decimal, Truth, Time };
  enum class Many { One, Commas, Repeated };
  enum class Need { Optional, Required };
  std::string_view name;
  std::string_view help;
  Type type = Type::Text;
  Range range = {.least = 0};  ///< of a number
  Words words = {};            ///< a text is one of, if there are any
  std::string_view pattern{};  ///< of a text
  Many many = Many::One;
  Need need = Need::Optional;
  std::string_view example{};
};

/// What comes back where all went well.
struct Answered {
  int status = 0;
  std::string_view document{};  ///< kind of the document; "" for none
  std::string_view media{};     ///< of a text that is no document: "text/plain"
};

struct Operation {
  std::string_view id;   ///< name of the handler; a generated client calls its function so
  std::string_view tag;  ///< of kTags
  std::string_view summary;
  std::string_view description{};
  std::array<QueryParameter, 12> query{};  ///< up to the first without a name
  std::string_view segment{};              ///< what stands where the route has braces
  std::string_view body{};                 ///< kind of the document; "" for none
  std::string_view example{};              ///< of the body
  bool takes_key = false;                  ///< header Idempotency-Key
  bool takes_match = false;                ///< header If-Match
  std::array<Answered, 2> answers{};
  std::array<int, 5> errors{};  ///< besides those any route may answer
};

/// A route with all that is told of it.
struct RouteView {
  std::string_view method;
  std::string_view pattern;
  std::string_view who;    ///< may use it, for people: "the owner, operators"
  std::string_view role;   ///< the least one: "operator"; "" for one that asks nobody who they are
  std::string_view scope;  ///< the least one of a token: "submit"; "" as well
  const Operation* about = nullptr;
};

/// The parts of the interface, in the order they are shown.
struct Tag {
  std::string_view name;
  std::string_view help;
};
[[nodiscard]] const std::array<Tag, 5>& tags();

/// The names of an operation's query parameters.
[[nodiscard]] std::vector<std::string> parameter_names(const Operation& about);

}  // namespace gflow::api
