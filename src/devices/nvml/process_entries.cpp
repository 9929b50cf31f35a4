// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/process_entries.h"

#include <algorithm>
#include <cstring>

namespace gflow::devices::nvml {

std::size_t entry_bytes(std::span<const std::byte> first,
                        std::span<const std::byte> second,
                        std::size_t count,
                        std::size_t guess) {
  std::size_t written = 0;
  for (std::size_t at = 0; at < std::min(first.size(), second.size()); ++at) {
    if (first[at] == second[at]) written = at + 1;
  }
  if (count == 0 || written == 0) return guess;
  const std::size_t each = (written + count - 1) / count;
  for (const std::size_t known : {16U, 24U, 32U}) {
    // The end of the last entry may be padding that is not written: take the next size up.
    if (each <= known) return known;
  }
  return guess;
}

std::vector<abi::Process> entries_of(std::span<const std::byte> buffer,
                                     std::size_t count,
                                     std::size_t bytes_each) {
  std::vector<abi::Process> entries;
  for (std::size_t at = 0; at < count && (at + 1) * bytes_each <= buffer.size(); ++at) {
    abi::Process entry{0, 0, abi::kNoInstance, abi::kNoInstance};
    std::memcpy(&entry, buffer.data() + at * bytes_each, std::min(bytes_each, sizeof entry));
    entries.push_back(entry);
  }
  return entries;
}

}  // namespace gflow::devices::nvml
