// SPDX-License-Identifier: Apache-2.0
// An amount is positive, at most 2^62 bytes, and shown so that it reads back within a percent.
#include <cmath>

#include "base/memory.h"
#include "base/text.h"
#include "require.h"

using gflow::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto memory = gflow::parse_memory(gflow::fuzz::text_of(data, size));
  if (!memory) {
    require(gflow::printable(memory.error().message) == memory.error().message);
    return 0;
  }
  require(memory->bytes > 0 && memory->bytes <= std::int64_t{1} << 62);
  if (memory->bytes < 1024) return 0;
  const auto back = gflow::parse_memory(gflow::memory_text(*memory));
  // An amount within half a hundredth of the limit may be shown as the limit, never as more.
  require(back.has_value());
  const double off = static_cast<double>(back->bytes - memory->bytes);
  require(std::abs(off) <= 0.01 * static_cast<double>(memory->bytes));
  return 0;
}
