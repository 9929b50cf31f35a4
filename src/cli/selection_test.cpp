// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "cli/selection.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace gflow::cli {
namespace {

Result<JobId> newest(std::uint64_t back) {
  if (back > 3) return fail(Code::NotFound, "you have no such job");
  return JobId(50 - back);
}

TEST(Selection, ReadsJobsFromManyWords) {
  const auto jobs = [](std::string_view line) {
    const std::vector<std::string> words = *shell_split(line);
    const auto ids = resolve_jobs(words, newest);
    if (!ids) return fmt::format("{}", code_name(ids.error().code));
    std::string out;
    for (const JobId id : *ids) out += fmt::format("{}{}", out.empty() ? "" : " ", id.value);
    return out;
  };
  for (const auto& [line, want] : {std::pair{"42", "42"},
                                   std::pair{"3 1-2 3", "1 2 3"},
                                   std::pair{"1,@ @~1", "1 49 50"},
                                   std::pair{"", "usage"},
                                   std::pair{",", "usage"},
                                   std::pair{"x", "usage"},
                                   std::pair{"@~9", "not_found"},
                                   std::pair{"@x", "usage"}}) {
    EXPECT_EQ(jobs(line), want) << line;
  }
}

TEST(Selection, IsNotByNothing) {
  for (const auto& [value, want] : {std::pair{"", "usage"},
                                    std::pair{" ", "usage"},
                                    std::pair{",", "usage"},
                                    std::pair{"a", "a"},
                                    std::pair{"a,", "a,"}}) {
    Invocation invocation;
    invocation.options["group"] = {value};
    const auto text = selected_by(invocation, "group");
    EXPECT_EQ(text ? *text : std::string(code_name(text.error().code)), want);
  }
  EXPECT_EQ(selected_by({}, "group"), "") << "it is not there";
}

TEST(Selection, ReadsTimesOfThePast) {
  const WallTime now = *parse_rfc3339("2026-03-10T12:00:00Z");
  const auto since = [&](std::string_view text) {
    const auto time = parse_since(text, now, Zone(std::chrono::hours(8)));
    return time ? rfc3339(*time) : fmt::format("{}", code_name(time.error().code));
  };
  for (const auto& [text, want] : {std::pair{"2h", "2026-03-10T10:00:00.000Z"},
                                   std::pair{"3d", "2026-03-07T12:00:00.000Z"},
                                   std::pair{"1w", "2026-03-03T12:00:00.000Z"},
                                   std::pair{"today", "2026-03-09T16:00:00.000Z"},
                                   std::pair{"yesterday", "2026-03-08T16:00:00.000Z"},
                                   std::pair{"2026-03-01T00:00:00Z", "2026-03-01T00:00:00.000Z"},
                                   std::pair{"1772000000", "2026-02-25T06:13:20.000Z"},
                                   std::pair{"5", "usage"},
                                   std::pair{"soon", "usage"},
                                   std::pair{"", "usage"}}) {
    EXPECT_EQ(since(text), want) << text;
  }
}

TEST(Selection, ReadsStates) {
  EXPECT_EQ(*parse_statuses("Running,pd"), (StatusSet{Status::Running, Status::Queued}));
  EXPECT_EQ(parse_statuses("runing").error().code, Code::Usage);
}

}  // namespace
}  // namespace gflow::cli
