// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include "api/json.h"
#include "api/query.h"
#include "base/translate.h"
#include "server/handlers.h"

namespace gflow::server {
namespace {

// Under the minute after which clients and whatever stands between give up on a silent connection.
constexpr std::chrono::seconds kMaxWait{55};

struct Wish {
  std::uint64_t revision = 0;
  std::optional<JobId> job;
};

Result<Wish> read_wish(const Exchange& exchange) {
  Wish wish;
  for (const api::Parameter& parameter : GF_TRY(api::read_parameters(exchange.request.query))) {
    if (parameter.name == "revision") {
      wish.revision = GF_TRY(api::number_of(parameter));
    } else {
      wish.job = JobId(GF_TRY(api::number_of(parameter)));
    }
  }
  if (wish.job && exchange.service.state().find(*wish.job) == nullptr) {
    return fail(Code::NotFound, tr_format("there is no job {}", wish.job->value));
  }
  return wish;
}

}  // namespace

void wait_for_change(Exchange exchange) {
  const auto wish = read_wish(exchange);
  if (!wish) return exchange.respond(problem(wish.error()));
  auto wait = exchange.service.on_change(
      wish->revision,
      wish->job,
      kMaxWait,
      [&service = exchange.service, respond = std::move(exchange.respond)] {
        respond(json_reply(api::write_revision(service.state().revision())));
      });
  if (exchange.keep) exchange.keep(std::move(wait));
}

}  // namespace gflow::server
