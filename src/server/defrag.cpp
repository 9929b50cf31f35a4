// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "api/defrag.h"

#include "server/handlers.h"
#include "server/shown.h"

namespace gflow::server {

/// Who is not shown a job is told that there is one more to move, or one ahead, but not which.
void show_defrag(Exchange exchange, DefragQuery query) {
  const Service& service = exchange.service;
  const Shown shown(exchange.caller, service.state());
  api::DefragView view;
  for (DefragPlan& plan : service.state().defrag(query.most, service.now())) {
    if (!shown.knows(plan.job)) continue;  // those that start together are of one user
    plan.other_moves = static_cast<int>(std::erase_if(
        plan.moves, [&shown](const DefragMove& move) { return !shown.knows(move.job); }));
    if (plan.behind && !shown.knows(*plan.behind)) plan.behind.reset();
    view.jobs.push_back(std::move(plan));
  }
  exchange.respond(json_reply_of(std::move(view)));
}

void apply_defrag(Exchange exchange) {
  read_body<api::DefragRequest>(
      std::move(exchange), api::read_defrag_request, [](Exchange known, api::DefragRequest asked) {
        std::ranges::sort(asked.moves);
        known.service.request(
            engine::event::ApplyDefrag{
                asked.job, std::move(asked.moves), api::kMaxDefrag, known.caller},
            changed(std::move(known.respond)));
      });
}

}  // namespace gflow::server
