// SPDX-License-Identifier: Apache-2.0
#include "server/next_link.h"

#include <fmt/format.h>

#include <string>

#include "api/query.h"
#include "base/text.h"

namespace gflow::server {
namespace {

// Some readers take 8 KiB of headers in all.
constexpr std::size_t kMaxLink = 4096;

std::string query_after(std::string_view query, std::string_view after) {
  std::string next;
  for (const std::string_view piece : split(query, '&')) {
    const auto parameters = api::read_parameters(piece);
    if (!parameters) continue;  // has been read before: there is none
    for (const auto& [name, value] : *parameters) {
      if (name != "after") api::append_parameter(next, name, value);
    }
  }
  api::append_parameter(next, "after", after);
  return next;
}

}  // namespace

void link_next(Reply& reply, const Request& request, std::string_view next) {
  if (next.empty()) return;
  std::string link =
      fmt::format("<{}?{}>; rel=\"next\"", request.path, query_after(request.query, next));
  if (link.size() <= kMaxLink) reply.headers.emplace_back("Link", std::move(link));
}

}  // namespace gflow::server
