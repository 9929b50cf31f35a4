// SPDX-License-Identifier: Apache-2.0
// What a Range header asks for lies within what there is, and its own text asks for the same.
#include "api/byte_range.h"

#include <string>

#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using gflow::api::AskedRange;
  const std::string_view text = gflow::fuzz::text_of(data, size);
  for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{10}, UINT64_MAX}) {
    const AskedRange asked = gflow::api::read_range(text, bytes);
    if (asked.kind != AskedRange::Kind::Part) continue;
    require(asked.part.first <= asked.part.last && asked.part.last < bytes);
    const std::string written =
        "bytes=" + std::to_string(asked.part.first) + "-" + std::to_string(asked.part.last);
    require(gflow::api::read_range(written, bytes) == asked);
  }
  return 0;
}
