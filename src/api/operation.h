// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "api/query_table.h"

/// What a route takes and answers, told once: the OpenAPI document and the page at /docs are made
/// from it, from what its handler reads of a query (api/query_table.h), and from the headers there
/// are (api/headers.h). Sentences are marked by tr_later() and shown in the reader's language.
namespace gflow::api {

/// The pattern of a route in its parts: "/api/v1/jobs/", "id", "/log".
struct Pattern {
  std::string_view before;
  std::string_view name{};  ///< in the braces; "" where there are none
  std::string_view after{};
};
[[nodiscard]] constexpr Pattern pattern_of(std::string_view pattern) {
  const std::size_t open = pattern.find('{');
  if (open == std::string_view::npos) return {pattern};
  const std::size_t close = pattern.find('}', open);
  if (close == std::string_view::npos) return {pattern};
  return {pattern.substr(0, open),
          pattern.substr(open + 1, close - open - 1),
          pattern.substr(close + 1)};
}
/// Whether those are all of its parts: it has one pair of braces with a name in them, or none.
[[nodiscard]] constexpr bool is_pattern(std::string_view pattern) {
  const Pattern parts = pattern_of(pattern);
  const auto has_braces = [](std::string_view part) {
    return part.find_first_of("{}") != part.npos;
  };
  return !has_braces(parts.before) && !has_braces(parts.name) && !has_braces(parts.after) &&
         parts.name.empty() == (parts.before == pattern);
}

/// What comes back where all went well.
struct Answered {
  int status = 0;
  std::string_view document{};  ///< kind of the document; "" for none
  std::string_view media{};     ///< of a text that is no document: "text/plain"
  /// Pattern of the route at which what was made, or is under way, is shown: the header Location;
  /// "" for none.
  std::string_view location{};
};

struct Operation {
  std::string_view id;   ///< name of the handler; a generated client calls its function so
  std::string_view tag;  ///< of kTags
  std::string_view summary;
  std::string_view description{};
  std::string_view segment{};  ///< what stands where the route has braces
  std::string_view segment_example{};
  std::string_view body{};      ///< kind of the document; "" for none
  std::string_view example{};   ///< of the body
  bool takes_key = false;       ///< header Idempotency-Key
  bool takes_match = false;     ///< header If-Match
  bool takes_range = false;     ///< header Range: the answer is sent in pieces, and has no tag
  bool takes_event_id = false;  ///< header Last-Event-ID
  bool gives_tag = false;       ///< header ETag with what it changed; what is read has one anyway
  bool is_paged = false;        ///< header Link to the next page
  bool is_docs = false;         ///< a page for people, or what that loads: browsers are told how to
  bool is_of_socket = false;    ///< over gflowd's socket only: no credential lets in
  /// Equal questions may get one answer: it is a whole document, and comes without waiting for
  /// news.
  bool is_shared = false;
  std::array<Answered, 2> answers{};
  std::array<std::string_view, 3> events{};  ///< kinds of the documents in a stream of events
  std::array<int, 5> errors{};               ///< besides those any route may answer
};

/// A route with all that is told of it.
struct RouteView {
  std::string_view method;
  std::string_view pattern;
  std::string_view who;    ///< may use it, for people: "the owner, operators"
  std::string_view role;   ///< the least one: "operator"; "" for one that asks nobody who they are
  std::string_view scope;  ///< the least one of a token: "submit"; "" as well
  const Operation* about = nullptr;
  std::vector<QueryParameter> query{};  ///< what its handler reads
};

/// The parts of the interface, in the order they are shown.
struct Tag {
  std::string_view name;
  std::string_view help;
};
[[nodiscard]] const std::array<Tag, 5>& tags();

}  // namespace gflow::api
