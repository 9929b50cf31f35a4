// SPDX-License-Identifier: Apache-2.0
#include "server/seen_jobs.h"

#include <memory>
#include <utility>

namespace gflow::server {
namespace {

constexpr std::size_t kSeenPerPiece = 1000;

struct Seeing {
  Exchange exchange;
  JobQuery query;  ///< for the next piece
  std::function<void(const engine::Glance&)> see;
  std::function<void(Exchange)> then;
};

void go_on_seeing(const std::shared_ptr<Seeing>& seeing) {
  Exchange& exchange = seeing->exchange;
  while (true) {
    const auto more_after =
        exchange.service.state().glance_some(seeing->query, kSeenPerPiece, seeing->see);
    if (!more_after) return seeing->then(std::move(exchange));
    seeing->query.after = *more_after;
    if (exchange.fair_work == nullptr) continue;
    return exchange.fair_work->later(exchange.caller, [seeing] { go_on_seeing(seeing); });
  }
}

}  // namespace

void see_jobs(Exchange exchange,
              JobQuery query,
              std::function<void(const engine::Glance&)> see,
              std::function<void(Exchange)> then) {
  query.sight = sight_of(exchange.caller);
  go_on_seeing(std::make_shared<Seeing>(
      std::move(exchange), std::move(query), std::move(see), std::move(then)));
}

}  // namespace gflow::server
