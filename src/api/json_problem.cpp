// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/documents.h"
#include "api/json.h"
#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/schema_writer.h"
#include "base/text.h"

namespace gflow::api {

namespace {

struct CodeStatus {
  Code code;
  int status;
  std::string_view title;
};
// The first line of a status is the code it stands for when nothing more is known.
constexpr std::array<CodeStatus, 11> kCodes = {{
    {Code::Failure, 500, "Internal Server Error"},
    {Code::Usage, 400, "Bad Request"},
    {Code::NotFound, 404, "Not Found"},
    {Code::Unreachable, 503, "Service Unavailable"},
    {Code::Permission, 403, "Forbidden"},
    {Code::WrongState, 409, "Conflict"},
    {Code::Infeasible, 422, "Unprocessable Content"},
    {Code::KeyReused, 422, "Unprocessable Content"},
    {Code::Timeout, 504, "Gateway Timeout"},
    {Code::Exhausted, 507, "Insufficient Storage"},
    {Code::Damaged, 500, "Internal Server Error"},
}};

struct OtherStatus {
  int status;
  Code code;
  std::string_view title;
};
// Said by the transport alone.
constexpr std::array<OtherStatus, 13> kOthers = {{
    {401, Code::Permission, "Unauthorized"},
    {405, Code::Usage, "Method Not Allowed"},
    {406, Code::Usage, "Not Acceptable"},
    {408, Code::Timeout, "Request Timeout"},
    {410, Code::NotFound, "Gone"},
    {412, Code::WrongState, "Precondition Failed"},
    {413, Code::Exhausted, "Content Too Large"},
    {415, Code::Usage, "Unsupported Media Type"},
    {416, Code::Usage, "Range Not Satisfiable"},
    {421, Code::Usage, "Misdirected Request"},
    {429, Code::Exhausted, "Too Many Requests"},
    {431, Code::Exhausted, "Request Header Fields Too Large"},
    {501, Code::Usage, "Not Implemented"},
}};

Code code_of(int status) {
  for (const CodeStatus& line : kCodes) {
    if (line.status == status) return line.code;
  }
  for (const OtherStatus& line : kOthers) {
    if (line.status == status) return line.code;
  }
  return status >= 400 && status < 500 ? Code::Usage : Code::Failure;
}

struct GoodStatus {
  int status;
  std::string_view title;
};
constexpr std::array<GoodStatus, 6> kGood = {{
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {304, "Not Modified"},
}};

struct Problem {
  std::string type;  ///< where the document tells of it, on this server
  std::string title;
  int status = 0;
  std::string detail;
  std::string code;
  int exit_code = 0;
  std::vector<FieldError> errors;         ///< where the fault is in fields of a body
  std::optional<std::uint64_t> after{};   ///< 410 of events: those after this one can be had
  std::optional<std::string> instance{};  ///< the id of the request
};

/// On one line.
std::string detail_of(std::string message) {
  for (std::size_t at = message.find('\n'); at != std::string::npos; at = message.find('\n', at)) {
    message.replace(at, 1, "; ");
  }
  return message;
}

Problem problem_of(const Error& error, int status) {
  const std::string_view code = code_name(error.code);
  return {.type = fmt::format("/docs#problem-{}", code),
          .title = std::string(status_title(status)),
          .status = status,
          .detail = detail_of(error.message),
          .code = std::string(code),
          .exit_code = exit_code(error.code),
          .errors = {}};
}

}  // namespace

template <>
inline constexpr std::string_view kSchemaName<FieldError> = "FieldError";
template <class Io, Like<FieldError> T>
void fields(Io& io, T& error) {
  io.field("pointer", error.pointer);
  io.field("detail", error.detail);
}

template <class Io, Like<Problem> T>
void fields(Io& io, T& problem) {
  io.field("type", problem.type);
  io.field("title", problem.title);
  io.field("status", problem.status);
  io.required("detail", problem.detail);
  io.required("code", problem.code);
  io.field("exit_code", problem.exit_code);
  io.field("errors", problem.errors);
  io.if_any("after", problem.after);
  io.if_any("instance", problem.instance);
}

void describe_problems(Schemas& schemas) { schemas.document<Problem>("Problem", Form::Answer); }

std::string_view status_title(int status) {
  for (const CodeStatus& line : kCodes) {
    if (line.status == status) return line.title;
  }
  for (const OtherStatus& line : kOthers) {
    if (line.status == status) return line.title;
  }
  const auto* good = std::ranges::find(kGood, status, &GoodStatus::status);
  if (good != kGood.end()) return good->title;
  return status < 500 ? "Bad Request" : "Internal Server Error";
}

int http_status(Code code) {
  const auto* line = std::ranges::find(kCodes, code, &CodeStatus::code);
  return line == kCodes.end() ? 500 : line->status;
}

std::string write_problem(const Error& error) {
  return write_problem(error, http_status(error.code));
}

std::string write_problem(const Error& error, int status) {
  return Writer::document("Problem", problem_of(error, status));
}

std::string write_problem(const Refusal& refusal) {
  Problem problem = problem_of(refusal, http_status(refusal.code));
  problem.errors = refusal.fields;
  return Writer::document("Problem", problem);
}

std::string write_events_gone(const Error& error, std::uint64_t after) {
  Problem problem = problem_of(error, kEventsGone);
  problem.after = after;
  return Writer::document("Problem", problem);
}

std::string with_instance(std::string problem, std::string_view request_id) {
  if (problem.ends_with('}')) {
    problem.insert(problem.size() - 1, fmt::format(R"(,"instance":"{}")", request_id));
  }
  return problem;
}

Error read_problem(int status, std::string_view body) {
  auto problem = Reader::answer<Problem>(body, "Problem");
  if (!problem && status < 400) {
    return no_answer(fmt::format("HTTP status {}", status));
  }
  if (!problem) {
    return {code_of(status),
            fmt::format("the daemon answered {} {}", status, status_title(status))};
  }
  const auto* line = std::ranges::find(
      kCodes, problem->code, [](const CodeStatus& known) { return code_name(known.code); });
  return {line == kCodes.end() ? code_of(status) : line->code, printable(problem->detail)};
}

}  // namespace gflow::api
