// SPDX-License-Identifier: Apache-2.0
// A duration is positive, at most ten years, and reads back from both ways of showing it.
#include "base/text.h"
#include "base/time.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto duration = gflow::parse_duration(gflow::fuzz::text_of(data, size));
  if (!duration) {
    require(gflow::printable(duration.error().message) == duration.error().message);
    return 0;
  }
  require(duration->count() > 0 && *duration <= std::chrono::days(3650));
  require(gflow::parse_duration(gflow::duration_text(*duration)) == duration);
  require(gflow::parse_duration(gflow::clock_text(*duration)) == duration);
  return 0;
}
