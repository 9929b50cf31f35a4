// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>

#include "api/byte_range.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/found_job.h"
#include "server/handlers.h"
#include "server/log_body.h"

namespace gflow::server {
namespace {

/// What is known of a log that was asked for.
struct LogReading {
  Exchange exchange;
  JobId job;
  LogFile where;
  LogQuery wish;
  std::optional<Service::DistantLog> distant = {};
  Result<os::Fd> file = os::Fd();  ///< invalid: there is none yet
  std::uint64_t size = 0;
};

Result<const Job*> job_with_log(const Exchange& exchange) {
  const Job* job = GF_TRY(find_job(exchange));
  if (!may_see(exchange.caller, job->spec.user)) {
    return fail(Code::Permission,
                tr_format("the log of job {} can be read by {} only",
                          job->id.value,
                          printable(job->spec.user.name)));
  }
  return job;
}

Result<LogReading> reading_of(Exchange& exchange, const LogQuery& wish) {
  const Job& job = *GF_TRY(job_with_log(exchange));
  if (auto distant = exchange.service.distant_log(job)) {
    LogReading asked{std::move(exchange), job.id, {}, wish};
    asked.distant = std::move(distant);
    return asked;
  }
  LogFile where{exchange.service.log_path(job.id), job.spec.user.uid};
  if (where.path.empty()) {
    return fail(Code::NotFound,
                tr_format("the log of job {} is not on this machine", job.id.value));
  }
  return LogReading{
      .exchange = std::move(exchange), .job = job.id, .where = std::move(where), .wish = wish};
}

/// Away from the loop.
void open(LogReading& asked) {
  if (asked.exchange.logs) {
    auto place = asked.exchange.logs->take_place();
    if (!place) {
      asked.file = std::unexpected(std::move(place).error());
      return;
    }
    asked.where.place = *std::move(place);
  }
  if (asked.distant) {
    if (asked.wish.follow) return;
    asked.file = asked.distant->read();
    if (!asked.file) return;
    asked.size = size_of(*asked.file).value_or(0);
    return;
  }
  if (asked.wish.follow) {
    if (auto can = asked.exchange.logs->can_follow(); !can) {
      asked.file = std::unexpected(std::move(can).error());
      return;
    }
  }
  asked.file = open_log(asked.where);
  if (!asked.file) {
    const bool is_to_come = asked.wish.follow && asked.file.error().code == Code::NotFound;
    if (is_to_come) asked.file = os::Fd();
    return;
  }
  const auto size = size_of(*asked.file);
  if (!size) asked.file = std::unexpected(size.error());
  asked.size = size.value_or(0);
}

Reply outside(std::uint64_t size) {
  constexpr int kRangeNotSatisfiable = 416;
  Reply reply =
      problem(Error{Code::Usage, tr_format("the log has {} bytes", size)}, kRangeNotSatisfiable);
  reply.headers.emplace_back("Content-Range", fmt::format("bytes */{}", size));
  return reply;
}

Reply text_reply(std::shared_ptr<Body> body, std::optional<std::uint64_t> length) {
  Reply reply{200, {}, "text/plain; charset=utf-8", {}};
  reply.headers = {{"Accept-Ranges", "bytes"}, {"X-Content-Type-Options", "nosniff"}};
  reply.streamed = Streamed{.body = std::move(body), .length = length};
  return reply;
}

std::shared_ptr<LogBody> body_of(LogReading& asked, LogPart part) {
  return std::make_shared<LogBody>(
      asked.exchange.logs, std::move(asked.where), std::move(*asked.file), part);
}

/// Tells the body of what becomes of the job, as long as it is there. On the loop.
void watch(Service& service, FairWork* work, JobId id, const std::shared_ptr<LogBody>& body) {
  constexpr std::chrono::hours kLookAgain{1};
  const Job* job = service.state().find(id);
  if (job == nullptr || is_ended(*job)) return body->ended();
  body->changed();
  auto wait = service.on_change(
      service.state().revision(), id, kLookAgain, [&service, work, id, left = std::weak_ptr(body)] {
        if (const auto known = left.lock()) watch(service, work, id, known);
      });
  body->keep(work == nullptr ? std::move(wait) : work->lend(std::move(wait)));
}

Reply followed(LogReading& asked) {
  if (asked.distant) return text_reply(asked.distant->follow(asked.wish.from, asked.wish.tail), {});
  if (asked.wish.from > asked.size) return outside(asked.size);
  LogPart part{.first = asked.wish.from, .last_lines = asked.wish.tail, .follow = true};
  const auto body = body_of(asked, part);
  watch(asked.exchange.service, asked.exchange.fair_work, asked.job, body);
  return text_reply(body, {});
}

/// As it is now.
Reply present(LogReading& asked) {
  if (asked.wish.tail) return text_reply(body_of(asked, {.last_lines = asked.wish.tail}), {});
  if (asked.wish.from > asked.size) return outside(asked.size);
  LogPart part{.first = asked.wish.from, .size = asked.size - asked.wish.from};
  using Kind = api::AskedRange::Kind;
  const auto range = api::read_range(asked.exchange.request.range, asked.size);
  if (range.kind == Kind::Outside) return outside(asked.size);
  if (range.kind == Kind::Whole) return text_reply(body_of(asked, part), part.size);
  part = {.first = range.part.first, .size = range.part.last - range.part.first + 1};
  Reply reply = text_reply(body_of(asked, part), part.size);
  reply.status = 206;
  reply.headers.emplace_back(
      "Content-Range",
      fmt::format("bytes {}-{}/{}", range.part.first, range.part.last, asked.size));
  return reply;
}

Error why_unread(const Error& error, JobId job) {
  if (error.code == Code::NotFound) {
    return {Code::NotFound,
            tr_format("job {} has no log: it has not started, or the log was removed", job.value)};
  }
  return error;
}

void answer(LogReading& asked) {
  if (!asked.file) {
    return asked.exchange.respond(problem(why_unread(asked.file.error(), asked.job)));
  }
  asked.exchange.respond(asked.wish.follow ? followed(asked) : present(asked));
}

Result<void> check_range(const LogReading& asked) {
  const bool has_range = !asked.exchange.request.range.empty();
  if (!has_range || !(asked.wish.follow || asked.wish.tail || asked.wish.from > 0)) return {};
  return fail(Code::Usage,
              tr("Range goes with neither tail, from nor follow; from=N begins there"));
}

}  // namespace

// NOLINTNEXTLINE(performance-unnecessary-value-param): as handlers take it
void show_job_log(Exchange exchange, LogQuery query) {
  auto read = reading_of(exchange, query);
  if (!read) return exchange.respond(problem(read.error()));
  const auto asked = std::make_shared<LogReading>(std::move(*read));
  Exchange& known = asked->exchange;
  if (auto may = check_range(*asked); !may) return known.respond(problem(may.error()));
  if (known.fair_work == nullptr) {
    open(*asked);
    return answer(*asked);
  }
  known.fair_work->aside(known.caller, [asked] { open(*asked); }, [asked] { answer(*asked); });
}

}  // namespace gflow::server
