// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "server/handlers.h"
#include "server/job_statistics.h"
#include "server/seen_jobs.h"

namespace gflow::server {
/// What took long to count is sorted where the answer is written, away from the loop.
void show_statistics(Exchange exchange, StatisticsQuery query) {
  const auto statistics = std::make_shared<JobStatistics>(
      query.wish, exchange.service.state(), exchange.service.now(), sight_of(exchange.caller));
  see_jobs(
      std::move(exchange),
      std::move(query.jobs),
      [statistics](const engine::Glance& job) { statistics->add(job); },
      [statistics](Exchange done) {
        statistics->counted();
        done.respond(
            json_reply_later([statistics] { return api::write(std::move(*statistics).finish()); }));
      });
}

}  // namespace gflow::server
