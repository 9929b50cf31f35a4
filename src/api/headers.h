// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "api/operation.h"
#include "base/translate.h"

/// The headers of requests and of answers, told once: what server reads and refuses, what it lets
/// web pages send and see, the OpenAPI document and the page at /docs are made from it. What HTTP
/// itself needs of an answer (Content-Length, Vary, Cache-Control and such) is not told, nor what
/// tells browsers of other pages (Access-Control-...).
namespace gflow::api {

/// Whether what a route reads has a tag, by which it is asked for again: all that is not sent in
/// pieces.
[[nodiscard]] bool is_known_again(const RouteView& route);

// Which routes read a header.
[[nodiscard]] bool takes_key(const RouteView& route);
[[nodiscard]] bool takes_match(const RouteView& route);
[[nodiscard]] bool takes_range(const RouteView& route);
[[nodiscard]] bool takes_event_id(const RouteView& route);

inline constexpr std::size_t kMaxKeyLength = 200;  ///< characters of an Idempotency-Key

struct RequestHeader {
  enum class Lines {
    List,      ///< may come in several lines, which are one list
    Once,      ///< refused where it is there twice
    Answered,  ///< Host, Authorization: whoever reads it has an answer of its own to two of them
  };
  std::string_view name;
  Lines lines = Lines::Once;
  /// What the OpenAPI document calls its parameter; "" where it is none: it is HTTP's own (as
  /// If-Range), or a browser's.
  std::string_view component{};
  std::string_view help{};
  bool (*is_read)(const RouteView&) = nullptr;  ///< by which routes; none: by all
  bool may_be_empty = true;                     ///< else it is refused where it says nothing
  std::size_t longest = 0;                      ///< characters; 0: no bound but that of all headers
  bool is_sent_by_pages = false;  ///< a web page from elsewhere that is let in may send it
};

/// All that are read.
inline constexpr auto kRequestHeaders = std::to_array<RequestHeader>({
    {.name = "Accept", .lines = RequestHeader::Lines::List},
    {.name = "Accept-Encoding", .lines = RequestHeader::Lines::List},
    {.name = "Accept-Language",
     .lines = RequestHeader::Lines::List,
     .component = "AcceptLanguage",
     .help = tr_later("of the sentences in the answer: zh_CN"),
     .is_sent_by_pages = true},
    {.name = "Authorization", .lines = RequestHeader::Lines::Answered, .is_sent_by_pages = true},
    {.name = "Content-Encoding", .lines = RequestHeader::Lines::List},
    {.name = "Content-Type", .is_sent_by_pages = true},
    {.name = "Host", .lines = RequestHeader::Lines::Answered},
    {.name = "Idempotency-Key",
     .component = "IdempotencyKey",
     .help = tr_later("of your choice: repeated with it within 24 hours, the request gives the "
                      "same answer and does nothing again"),
     .is_read = takes_key,
     .may_be_empty = false,
     .longest = kMaxKeyLength,
     .is_sent_by_pages = true},
    {.name = "If-Match",
     .lines = RequestHeader::Lines::List,
     .component = "IfMatch",
     .help = tr_later("ETag of what is to be changed: 412 if it is another by now"),
     .is_read = takes_match,
     .may_be_empty = false,
     .is_sent_by_pages = true},
    {.name = "If-None-Match",
     .lines = RequestHeader::Lines::List,
     .component = "IfNoneMatch",
     .help = tr_later("ETag of what you have: 304 if it is the same"),
     .is_read = is_known_again,
     .is_sent_by_pages = true},
    {.name = "If-Range", .is_read = takes_range},
    {.name = "Last-Event-ID",
     .component = "LastEventID",
     .help = tr_later("id of the latest event that came: those after it follow"),
     .is_read = takes_event_id,
     .is_sent_by_pages = true},
    {.name = "Origin"},
    {.name = "Range",
     .component = "Range",
     .help = tr_later("the part that is wanted: bytes=0-1023; not with tail, from or follow"),
     .is_read = takes_range,
     .is_sent_by_pages = true},
    {.name = "Sec-Fetch-Site"},
    {.name = "X-Request-Id",
     .component = "XRequestId",
     .help = tr_later("id of the request in the log of gflowd and in its answer: 1 to 64 letters, "
                      "digits, '.', '_' and '-'; a value of another form is replaced"),
     .is_sent_by_pages = true},
});

[[nodiscard]] constexpr bool is_read_by(const RequestHeader& header, const RouteView& route) {
  return header.is_read == nullptr || header.is_read(route);
}

/// The name of one of the table: of any other it does not compile.
class RequestHeaderName {
 public:
  consteval RequestHeaderName(const char* name)  // NOLINT(google-explicit-constructor)
      : name_(std::ranges::find(kRequestHeaders, std::string_view(name), &RequestHeader::name)
                  ->name) {}
  [[nodiscard]] constexpr std::string_view text() const { return name_; }

 private:
  std::string_view name_;
};

// With which answers a header comes, as AnswerHeader::comes says.
[[nodiscard]] bool comes_with_range(const RouteView& route, int status);
[[nodiscard]] bool comes_with_log(const RouteView& route, int status);
[[nodiscard]] bool comes_with_allow(const RouteView& route, int status);
[[nodiscard]] bool comes_with_docs(const RouteView& route, int status);
[[nodiscard]] bool comes_with_tag(const RouteView& route, int status);
[[nodiscard]] bool comes_with_link(const RouteView& route, int status);
[[nodiscard]] bool comes_with_location(const RouteView& route, int status);
[[nodiscard]] bool comes_with_retry(const RouteView& route, int status);
[[nodiscard]] bool comes_with_challenge(const RouteView& route, int status);
[[nodiscard]] bool comes_with_events(const RouteView& route, int status);
[[nodiscard]] bool comes_with_text(const RouteView& route, int status);

struct AnswerHeader {
  std::string_view name;
  /// What the OpenAPI document calls it; "" where it leads to a route, or comes with none.
  std::string_view component{};
  std::string_view help{};
  std::string_view pattern{};  ///< regular expression of what it says; "" for any text
  /// With which answers it may come; none: with all.
  bool (*comes)(const RouteView&, int status) = nullptr;
  bool is_number = false;
  bool leads_to_route = false;    ///< its pattern is that of location_of()
  bool is_certain = true;         ///< comes whenever it may
  bool is_read_by_pages = false;  ///< a web page from elsewhere that is let in may read it
};

/// All that are set, but for HTTP's own.
inline constexpr auto kAnswerHeaders = std::to_array<AnswerHeader>({
    {.name = "Accept-Ranges",
     .component = "AcceptRanges",
     .help = tr_later("the unit in which a part of it may be asked for by Range"),
     .pattern = "^bytes$",
     .comes = comes_with_log},
    {.name = "Allow",
     .help = tr_later("methods that the path takes: with 405, and of OPTIONS"),
     .comes = comes_with_allow},
    {.name = "Content-Range",
     .component = "ContentRange",
     .help = tr_later(
         "which bytes of the log these are, and how many it has; with 416 only how many it has"),
     .pattern = "^bytes ([0-9]+-[0-9]+|[*])/[0-9]+$",
     .comes = comes_with_range,
     .is_read_by_pages = true},
    {.name = "Content-Security-Policy",
     .component = "ContentSecurityPolicy",
     .help = tr_later("what a browser may load for the page: its own style and script"),
     .comes = comes_with_docs},
    {.name = "ETag",
     .component = "ETag",
     .help = tr_later("which version this is, for If-None-Match; that of a job or an allocation "
                      "for If-Match, too"),
     .pattern = "^(W/)?\"[^\"]+\"$",
     .comes = comes_with_tag,
     .is_read_by_pages = true},
    {.name = "Link",
     .component = "Link",
     .help =
         tr_later("the next page: <...>; rel=\"next\". Not with the last, nor where it would be "
                  "longer than 4 KiB"),
     .pattern = "^<[^>]+>; rel=\"next\"$",
     .comes = comes_with_link,
     .is_certain = false,
     .is_read_by_pages = true},
    {.name = "Location",
     .help = tr_later("where what was made, or is under way, is shown"),
     .comes = comes_with_location,
     .leads_to_route = true,
     .is_read_by_pages = true},
    {.name = "Referrer-Policy",
     .component = "ReferrerPolicy",
     .help = tr_later("browsers do not tell other sites which page a link was on"),
     .pattern = "^no-referrer$",
     .comes = comes_with_docs},
    {.name = "Retry-After",
     .component = "RetryAfter",
     .help = tr_later("seconds after which to try again"),
     .comes = comes_with_retry,
     .is_number = true,
     .is_read_by_pages = true},
    {.name = "WWW-Authenticate",
     .component = "WWWAuthenticate",
     .help = tr_later("how to show who you are: by a token"),
     .pattern = "^Bearer ",
     .comes = comes_with_challenge},
    {.name = "X-Accel-Buffering",
     .component = "XAccelBuffering",
     .help = tr_later("tells proxies not to hold back what comes"),
     .pattern = "^no$",
     .comes = comes_with_events},
    {.name = "X-Content-Type-Options",
     .component = "XContentTypeOptions",
     .help = tr_later("browsers are to take it for what Content-Type says"),
     .pattern = "^nosniff$",
     .comes = comes_with_text},
    // Who is turned away before anything is read has none.
    {.name = "X-Request-Id",
     .component = "XRequestId",
     .help = tr_later("by which the request is found in the log of gflowd"),
     .pattern = "^[A-Za-z0-9._-]{1,64}$",
     .is_certain = false,
     .is_read_by_pages = true},
});

[[nodiscard]] constexpr bool comes_with(const AnswerHeader& header,
                                        const RouteView& route,
                                        int status) {
  return header.comes == nullptr || header.comes(route, status);
}

/// Whether it comes with all such answers.
[[nodiscard]] bool is_certain(const AnswerHeader& header, const RouteView& route, int status);

/// Pattern of the route that Location leads to with this status; "" where there is none.
[[nodiscard]] std::string_view location_of(const RouteView& route, int status);

}  // namespace gflow::api
