// SPDX-License-Identifier: Apache-2.0
#include "api/headers.h"

namespace gflow::api {
namespace {

constexpr int kOk = 200;
constexpr int kPartial = 206;
constexpr int kNotModified = 304;
constexpr int kUnauthorized = 401;
constexpr int kRangeNotSatisfiable = 416;
constexpr int kTooManyRequests = 429;
constexpr int kUnavailable = 503;

/// With what was read, known already or not.
bool is_read_well(int status) { return status == kOk || status == kNotModified; }

}  // namespace

bool is_known_again(const RouteView& route) {
  return route.method == "GET" && !route.about->takes_range && route.about->events.front().empty();
}

bool takes_key(const RouteView& route) { return route.about->takes_key; }
bool takes_match(const RouteView& route) { return route.about->takes_match; }
bool takes_range(const RouteView& route) { return route.about->takes_range; }
bool takes_event_id(const RouteView& route) { return route.about->takes_event_id; }

bool comes_with_range(const RouteView& route, int status) {
  return takes_range(route) && (status == kPartial || status == kRangeNotSatisfiable);
}

bool comes_with_log(const RouteView& route, int status) {
  return takes_range(route) && (status == kOk || status == kPartial);
}

/// No operation of the document is one that its path does not take.
bool comes_with_allow(const RouteView& /*route*/, int /*status*/) { return false; }

bool comes_with_docs(const RouteView& route, int status) {
  return route.about->is_docs && is_read_well(status);
}

bool comes_with_tag(const RouteView& route, int status) {
  if (is_known_again(route)) return is_read_well(status);
  return route.about->gives_tag && status == kOk;
}

bool comes_with_link(const RouteView& route, int status) {
  return route.about->is_paged && is_read_well(status);
}

bool comes_with_location(const RouteView& route, int status) {
  return !location_of(route, status).empty();
}

bool comes_with_retry(const RouteView& /*route*/, int status) {
  return status == kTooManyRequests || status == kUnavailable;
}

bool comes_with_challenge(const RouteView& /*route*/, int status) {
  return status == kUnauthorized;
}

bool comes_with_events(const RouteView& route, int status) {
  return !route.about->events.front().empty() && status == kOk;
}

bool comes_with_text(const RouteView& route, int status) {
  return comes_with_log(route, status) || comes_with_docs(route, status);
}

// What is repeated under a key is answered without Location once what was made is forgotten.
bool is_certain(const AnswerHeader& header, const RouteView& route, int status) {
  const bool may_be_forgotten = header.leads_to_route && takes_key(route);
  return header.is_certain && !may_be_forgotten && comes_with(header, route, status);
}

std::string_view location_of(const RouteView& route, int status) {
  for (const Answered& answer : route.about->answers) {
    if (answer.status == status && !answer.location.empty()) return answer.location;
  }
  return "";
}

}  // namespace gflow::api
