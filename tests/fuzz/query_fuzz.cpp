// SPDX-License-Identifier: Apache-2.0
// A query that is read is written as one that is read as the same; errors are fit to be printed.
#include "api/json.h"
#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto query = gflow::api::read_query(gflow::fuzz::text_of(data, size));
  if (!query) {
    require(gflow::printable(query.error().message) == query.error().message);
    return 0;
  }
  require(query->most >= 1 && query->most <= 1000);
  const std::string written = gflow::api::write_query(*query);
  const auto again = gflow::api::read_query(written);
  require(again && gflow::api::write_query(*again) == written);
  return 0;
}
