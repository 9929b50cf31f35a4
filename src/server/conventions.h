// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "server/compression.h"
#include "server/exchange.h"
#include "server/terms.h"

namespace gflow::server {

/// What is true of every answer, whatever the route: its request id, which a problem has as
/// instance; Retry-After where trying again may help; an entity tag of what was read, or 304 for
/// what the client knows; and gzip where it takes that. What comes in pieces has neither tag nor
/// coding.
[[nodiscard]] Reply finished(const Terms& terms, Reply reply);

/// That about Retry-After alone, for an answer to a request that nobody reads.
void add_retry_after(Reply& reply);

/// Whether that takes no longer than to hand it to another thread.
[[nodiscard]] bool is_soon_finished(const Terms& terms, const Reply& reply);

/// finished() a step at a time, beginning with the body where that is not written yet.
class Finishing {
 public:
  Finishing(Terms terms, Reply reply) : terms_(std::move(terms)), reply_(std::move(reply)) {}
  /// Whether that was the last.
  [[nodiscard]] bool step();
  /// After the last.
  [[nodiscard]] Reply take() { return std::move(reply_); }

 private:
  bool begin();
  bool compress();

  Terms terms_;
  Reply reply_;
  std::optional<Gzip> gzip_;    ///< once that is being done
  std::size_t compressed_ = 0;  ///< of the body
};

}  // namespace gflow::server
