// SPDX-License-Identifier: Apache-2.0
#include "core/job_range.h"

#include <gtest/gtest.h>

#include "core/requests.h"

namespace gflow {
namespace {

TEST(JobRange, HoldsAsManyBytesAsItsJobs) {
  const JobRange ranges[] = {
      {.first = {.id = JobId(8), .spec = {.name = "alike"}}, .count = 12},
      {.first = {.id = JobId(8), .spec = {.name = "array_8"}}, .count = 1, .naming = {.step = 3}},
      {.first = {.id = JobId(8), .spec = {.name = "array_0"}}, .count = 12, .naming = {.step = 1}},
      {.first = {.id = JobId(8), .spec = {.name = "a_b_7"}}, .count = 2'500, .naming = {.step = 7}},
      {.first = {.id = JobId(8), .spec = {.name = "a_007"}}, .count = 120, .naming = {.step = 1}},
      {.first = {.id = JobId(8), .spec = {.name = "far_10"}},
       .count = 3,
       .naming = {.step = 4'000'000'000}},
      {.first = {.id = JobId(8), .spec = {.name = made_up_name(8)}},
       .count = 500,
       .naming = {.by_id = true}},
  };
  for (const JobRange& range : ranges) {
    std::int64_t bytes = 0;
    for (std::uint64_t i = 0; i < range.count; ++i) {
      bytes += static_cast<std::int64_t>(bytes_of(range.at(i)));
    }
    EXPECT_EQ(bytes_of(range), bytes) << range.first.spec.name;
  }
}

}  // namespace
}  // namespace gflow
