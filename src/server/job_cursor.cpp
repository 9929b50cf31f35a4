// SPDX-License-Identifier: Apache-2.0
#include "server/job_cursor.h"

#include <charconv>
#include <optional>
#include <vector>

#include "api/cursor.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow::server {
namespace {

using std::chrono::milliseconds;

std::optional<std::int64_t> integer(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return number;
}

}  // namespace

std::string write_job_cursor(const JobCursor& cursor) {
  return api::write_cursor(std::vector<std::string>{job_order_text({.key = cursor.key}),
                                                    std::to_string(cursor.place.number),
                                                    cursor.place.text,
                                                    std::to_string(cursor.place.id.value),
                                                    std::to_string(cursor.as_of.count())});
}

Result<JobCursor> read_job_cursor(std::string_view text, JobKey key) {
  const std::vector<std::string> parts = GF_TRY(api::read_cursor(text));
  constexpr std::size_t kParts = 5;
  if (parts.size() == kParts && parts[0] == job_order_text({.key = key})) {
    const auto number = integer(parts[1]);
    const auto id = parse_number(parts[3]);
    const auto as_of = integer(parts[4]);
    constexpr std::int64_t kMostMillis = std::int64_t{1} << 43;  // some 278 years
    if (number && id && as_of && *as_of >= 0 && *as_of < kMostMillis) {
      return JobCursor{key, {*number, parts[2], JobId(*id)}, milliseconds(*as_of)};
    }
  }
  return fail(Code::Usage,
              tr("after is of another order: take what the page before had as 'next', and begin "
                 "without it where the order changes"));
}

}  // namespace gflow::server
