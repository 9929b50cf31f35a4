// SPDX-License-Identifier: Apache-2.0
#include "server/conventions.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "server/compression.h"
#include "server/entity_tag.h"

namespace gflow::server {
namespace {

constexpr std::size_t kWorthCompressing = 1024;
constexpr int kTooManyRequests = 429;
constexpr int kUnavailable = 503;

/// A limit of requests under way frees itself at once; a daemon that starts takes some seconds.
void add_retry_after(Reply& reply) {
  const auto is_told = [](const auto& header) { return header.first == "Retry-After"; };
  if (std::ranges::any_of(reply.headers, is_told)) return;
  if (reply.status == kTooManyRequests) reply.headers.emplace_back("Retry-After", "1");
  if (reply.status == kUnavailable) reply.headers.emplace_back("Retry-After", "5");
}

bool is_read(const Terms& terms) { return terms.method == "GET" || terms.method == "HEAD"; }

void compress(const Terms& terms, Reply& reply) {
  if (reply.body.size() < kWorthCompressing || !takes_gzip(terms.accept_encoding)) return;
  std::string small = gzip(reply.body);
  if (small.empty() || small.size() >= reply.body.size()) return;
  reply.body = std::move(small);
  reply.headers.emplace_back("Content-Encoding", "gzip");
  mark_coded(reply);
}

}  // namespace

Reply finished(const Terms& terms, Reply reply) {
  if (reply.content_type == "application/problem+json") {
    reply.body = api::with_instance(std::move(reply.body), terms.request_id);
  }
  add_retry_after(reply);
  const bool is_whole = !reply.streamed;
  if (is_read(terms) && is_whole) {
    reply = unless_known(terms.if_none_match, std::move(reply));
    reply.headers.emplace_back("Vary", "Accept-Encoding, Accept-Language");
  }
  // What is kept is asked for again before it is used; the rest is nobody's to keep.
  const bool may_be_kept =
      is_whole && is_read(terms) && (reply.status == 200 || reply.status == 304);
  reply.headers.emplace_back("Cache-Control", may_be_kept ? "private, no-cache" : "no-store");
  if (is_whole) compress(terms, reply);
  reply.headers.emplace_back("X-Request-Id", terms.request_id);
  return reply;
}

}  // namespace gflow::server
