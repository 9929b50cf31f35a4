// SPDX-License-Identifier: Apache-2.0
#include "server/conventions.h"

#include <algorithm>
#include <utility>

#include "api/json.h"
#include "server/entity_tag.h"
#include "server/made_once.h"

namespace gflow::server {
namespace {

constexpr std::size_t kWorthCompressing = 1024;
constexpr int kTooManyRequests = 429;

bool is_read(const Terms& terms) { return terms.method == "GET" || terms.method == "HEAD"; }

bool is_compressed(const Terms& terms, const Reply& reply) {
  return !reply.streamed && reply.body.size() >= kWorthCompressing &&
         takes_gzip(terms.accept_encoding);
}

void put_coded(Reply& reply, std::string coded) {
  if (coded.empty() || coded.size() >= reply.body.size()) return;
  reply.body = std::move(coded);
  reply.headers.emplace_back("Content-Encoding", "gzip");
  mark_coded(reply);
}

/// All but the coding.
Reply completed(const Terms& terms, Reply reply) {
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
  reply.headers.emplace_back("X-Request-Id", terms.request_id);
  return reply;
}

}  // namespace

// A limit of requests under way frees itself at once; a daemon that starts takes some seconds.
void add_retry_after(Reply& reply) {
  const auto is_told = [](const auto& header) { return header.first == "Retry-After"; };
  if (std::ranges::any_of(reply.headers, is_told)) return;
  if (reply.status == kTooManyRequests) reply.headers.emplace_back("Retry-After", "1");
  if (reply.status == kUnavailable) reply.headers.emplace_back("Retry-After", "5");
}

/// A short text is, whatever is done with it; a longer one that has its tag and only to be copied.
bool is_soon_finished(const Terms& terms, const Reply& reply) {
  constexpr std::size_t kShort = 4096;
  constexpr std::size_t kSoonCopied = 65'536;
  if (reply.write) return false;
  if (!reply.making) return reply.body.size() <= kShort;
  const auto made = reply.making->if_made();
  if (!made || made->text.size() > kSoonCopied) return false;
  return made->zipped || made->text.size() <= kShort || !takes_gzip(terms.accept_encoding);
}

Reply finished(const Terms& terms, Reply reply) {
  Finishing all(terms, std::move(reply));
  while (!all.step()) {
  }
  return all.take();
}

bool Finishing::step() { return gzip_ ? compress() : begin(); }

bool Finishing::begin() {
  reply_ = completed(terms_, written(std::move(reply_)));
  if (!is_compressed(terms_, reply_)) return true;
  if (reply_.kept && reply_.kept->zipped) {
    put_coded(reply_, *reply_.kept->zipped);
    return true;
  }
  gzip_.emplace();
  return false;
}

bool Finishing::compress() {
  constexpr std::size_t kPiece = 256 * 1024;
  const std::string_view piece = std::string_view(reply_.body).substr(compressed_, kPiece);
  compressed_ += piece.size();
  const bool is_last = compressed_ == reply_.body.size();
  gzip_->put(piece, is_last);
  if (is_last) put_coded(reply_, gzip_->take());
  return is_last;
}

}  // namespace gflow::server
