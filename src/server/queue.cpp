// SPDX-License-Identifier: Apache-2.0
#include "api/queue.h"

#include <algorithm>

#include "server/handlers.h"
#include "server/shown.h"
#include "server/views.h"

namespace gflow::server {

/// Where another decides, nothing is known of in which order.
void show_queue(Exchange exchange, QueueQuery query) {
  const Service& service = exchange.service;
  const Now now = service.now();
  const Shown shown(exchange.caller, service.state());
  api::QueueView queue;
  if (!service.decides()) return exchange.respond(json_reply_of(std::move(queue)));
  for (const engine::Expected& one : service.state().forecast(query.most, now)) {
    if (!shown.knows(one.job)) continue;
    api::QueuedJob job{one.job, {}};
    if (one.start) job.expected_start = view_of(*one.start);
    queue.jobs.push_back(job);
  }
  exchange.respond(json_reply_of(std::move(queue)));
}

}  // namespace gflow::server
