// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow {
namespace {

constexpr std::uint64_t kMaxIds = 100'000;
// Ids are stored as signed 64-bit numbers, and bit 62 marks jobs of one submission.
constexpr std::uint64_t kLargestId = (std::uint64_t{1} << 62) - 1;

std::optional<std::uint64_t> job_number(std::string_view text) {
  const auto number = parse_number(trim(text));
  return number && *number > 0 && *number <= kLargestId ? number : std::nullopt;
}

struct IdRange {
  std::uint64_t first;
  std::uint64_t last;
};

/// "5" or "5-7".
Result<IdRange> parse_range(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto first = job_number(text.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : job_number(text.substr(dash + 1));
  if (!first || !last) {
    return fail(Code::Usage,
                tr_format("'{}' is not a job id; write ids as 42 or 1,3,5-7", printable(text)));
  }
  if (*last < *first) {
    return fail(Code::Usage,
                tr_format("invalid range '{}': write {}-{}", printable(text), *last, *first));
  }
  return IdRange{*first, *last};
}

}  // namespace

Result<std::vector<JobId>> parse_job_ids(std::string_view text) {
  std::vector<JobId> ids;
  for (const std::string_view piece : split(text, ',')) {
    const IdRange range = GF_TRY(parse_range(piece));
    if (range.last - range.first >= kMaxIds - ids.size()) {
      return fail(Code::Usage, tr_format("more than {} job ids at once", kMaxIds));
    }
    for (std::uint64_t id = range.first; id <= range.last; ++id) ids.emplace_back(id);
  }
  std::ranges::sort(ids);
  const auto repeated = std::ranges::unique(ids);
  ids.erase(repeated.begin(), repeated.end());
  return ids;
}

Result<JobReference> parse_job_reference(std::string_view text) {
  const std::string_view body = trim(text);
  if (body == "@") return JobReference{};
  if (body.starts_with("@~")) {
    if (const auto back = parse_number(body.substr(2))) return JobReference{{}, *back};
  } else if (const auto number = job_number(body)) {
    return JobReference{JobId(*number), 0};
  }
  return fail(Code::Usage,
              tr_format("'{}' is not a job; write its id, @ for your newest job or @~1 for the "
                        "one before it",
                        printable(text)));
}

}  // namespace gflow
