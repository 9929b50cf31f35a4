// SPDX-License-Identifier: Apache-2.0
#include "server/http_counters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "api/json.h"

namespace gflow::server {
namespace {

/// What a status is called that has no name of its own.
std::string_view no_name(int status) { return api::status_title(status < 500 ? 400 : 500); }

TEST(HttpCounters, TellEveryStatusApartThatIsAnswered) {
  constexpr auto& kCounted = HttpCounters::kStatuses;
  EXPECT_TRUE(std::ranges::is_sorted(kCounted)) << "it is searched by halves";
  for (int status = 200; status < 600; ++status) {
    const bool is_answered =
        status == 400 || status == 500 || api::status_title(status) != no_name(status);
    EXPECT_EQ(std::ranges::count(kCounted, status), is_answered ? 1 : 0) << status;
  }
}

TEST(HttpCounters, CountAJobThatWasMadeAsMade) {
  HttpCounters counters(1);
  counters.answered(0, 201, std::nullopt);
  const auto& counts = counters.routes().at(0).by_status;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    EXPECT_EQ(counts.at(i).load(), HttpCounters::kStatuses.at(i) == 201 ? 1U : 0U);
  }
}

}  // namespace
}  // namespace gflow::server
