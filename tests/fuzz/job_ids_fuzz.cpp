// SPDX-License-Identifier: Apache-2.0
// Ids come out ascending, set and within their limit; errors are fit to be printed.
#include <algorithm>

#include "base/text.h"
#include "core/requests.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = gflow::fuzz::text_of(data, size);
  if (const auto ids = gflow::parse_job_ids(text)) {
    require(!ids->empty() && ids->size() <= 100'000 && ids->front().is_set());
    require(std::ranges::is_sorted(*ids, std::less_equal{}) || ids->size() == 1);
    require(std::ranges::adjacent_find(*ids) == ids->end());
  } else {
    require(gflow::printable(ids.error().message) == ids.error().message);
  }
  if (const auto reference = gflow::parse_job_reference(text)) {
    require(!reference->id || (reference->id->is_set() && reference->newest_back == 0));
  }
  return 0;
}
