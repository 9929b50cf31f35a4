// SPDX-License-Identifier: Apache-2.0
#include <memory>

#include "api/query.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/handlers.h"
#include "server/job_statistics.h"
#include "server/seen_jobs.h"

namespace gflow::server {
namespace {

struct StatisticsQuery {
  JobQuery jobs;
  StatisticsWish wish;
};

Result<StatisticsWish::By> read_by(std::string_view text) {
  if (text == "none") return StatisticsWish::By::None;
  if (text == "user") return StatisticsWish::By::User;
  if (text == "project") return StatisticsWish::By::Project;
  return fail(Code::Usage,
              tr_format("by is none, user or project, not '{}'", printable(text.substr(0, 100))));
}

Result<StatisticsQuery> read_statistics_query(std::string_view query) {
  StatisticsQuery asked;
  for (const auto& [name, value] : GF_TRY(api::read_parameters(query))) {
    if (name == "since") {
      asked.wish.since = GF_TRY(parse_rfc3339(value));
    } else if (name == "until") {
      asked.wish.until = GF_TRY(parse_rfc3339(value));
    } else if (name == "by") {
      asked.wish.by = GF_TRY(read_by(value));
    } else if (name == "project") {
      asked.jobs.project = value;
    } else if (name == "group") {
      asked.jobs.group = value;
    } else {
      for (const std::string_view user : split(value, ',')) asked.jobs.users.emplace_back(user);
    }
  }
  return asked;
}

}  // namespace

/// What took long to count is sorted where the answer is written, away from the loop.
void show_statistics(Exchange exchange) {
  const auto asked = read_statistics_query(exchange.request.query);
  if (!asked) return exchange.respond(problem(asked.error()));
  const auto statistics = std::make_shared<JobStatistics>(asked->wish);
  see_jobs(
      std::move(exchange),
      asked->jobs,
      [statistics](const engine::Glance& job) { statistics->add(job); },
      [statistics](Exchange done) {
        done.respond(json_reply_later([statistics, now = done.service.now().wall] {
          return api::write(std::move(*statistics).finish(now));
        }));
      });
}

}  // namespace gflow::server
