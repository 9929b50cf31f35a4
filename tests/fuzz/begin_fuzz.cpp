// SPDX-License-Identifier: Apache-2.0
// A begin time, whatever the input, is one that can be shown and read back.
#include "base/text.h"
#include "core/requests.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr gflow::WallTime kNow{std::chrono::seconds(1'772'366'400)};
  for (const std::chrono::hours offset : {std::chrono::hours(0), std::chrono::hours(-11)}) {
    const auto at = gflow::parse_begin(gflow::fuzz::text_of(data, size), kNow, gflow::Zone(offset));
    if (!at) {
      require(gflow::printable(at.error().message) == at.error().message);
      return 0;
    }
    const auto year =
        std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(*at)).year();
    if (year >= std::chrono::year(0) && year <= std::chrono::year(9999)) {
      require(gflow::parse_rfc3339(gflow::rfc3339(*at)) == *at);
    }
  }
  return 0;
}
