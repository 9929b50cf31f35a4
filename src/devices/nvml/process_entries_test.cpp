// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/process_entries.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace gflow::devices::nvml {
namespace {

/// A buffer as a driver with entries of `each` bytes leaves it, `unwritten` at the end of each.
std::vector<std::byte> answer(std::size_t each,
                              std::size_t count,
                              std::byte fill,
                              std::size_t unwritten = 0) {
  std::vector<std::byte> buffer(64 * 32, fill);
  for (std::size_t at = 0; at < count; ++at) {
    const abi::Process process{static_cast<std::uint32_t>(1000 + at), std::uint64_t{1} << 30};
    std::byte* out = buffer.data() + at * each;
    std::memset(out, 0xFF, each - unwritten);
    std::memcpy(out, &process.pid, sizeof process.pid);
    std::memcpy(out + 8, &process.memory, sizeof process.memory);
  }
  return buffer;
}

TEST(ProcessEntries, TheDriversLayoutIsFoundOut) {
  for (const std::size_t each : {16U, 24U, 32U}) {
    for (const std::size_t count : {1U, 2U, 17U, 60U}) {
      const auto first = answer(each, count, std::byte{0xA5});
      const auto second = answer(each, count, std::byte{0x5A});
      EXPECT_EQ(entry_bytes(first, second, count, 1), each) << count;
      const auto entries = entries_of(first, count, each);
      ASSERT_EQ(entries.size(), count);
      EXPECT_EQ(entries.back().pid, 1000 + count - 1);
      EXPECT_EQ(entries.back().memory, std::uint64_t{1} << 30);
    }
  }
}

TEST(ProcessEntries, PaddingThatIsNotWrittenDoesNotMislead) {
  EXPECT_EQ(
      entry_bytes(answer(32, 1, std::byte{0xA5}, 7), answer(32, 1, std::byte{0x5A}, 7), 1, 24),
      32U);
}

TEST(ProcessEntries, NothingWrittenTellsNothing) {
  const auto first = answer(24, 0, std::byte{0xA5});
  const auto second = answer(24, 0, std::byte{0x5A});
  EXPECT_EQ(entry_bytes(first, second, 0, 24), 24U);
  EXPECT_EQ(entry_bytes(first, second, 3, 24), 24U);
}

TEST(ProcessEntries, NoMoreThanTheBufferHolds) {
  const auto buffer = answer(32, 64, std::byte{0});
  EXPECT_EQ(entries_of(buffer, 1000, 32).size(), 64U);
}

}  // namespace
}  // namespace gflow::devices::nvml
