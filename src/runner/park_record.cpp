// SPDX-License-Identifier: Apache-2.0
#include "runner/park_record.h"

#include <fmt/format.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

namespace gflow::runner {
namespace {

constexpr std::string_view kMost = "most";

std::optional<Memory> parse_bytes(std::string_view text) {
  const auto number = parse_number(text);
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 50;  // so that sums of them fit
  if (!number || *number > kLargest) return std::nullopt;
  return Memory{static_cast<std::int64_t>(*number)};
}

}  // namespace

Memory ParkRecord::taken() const {
  Memory all{};
  for (const auto& [gpu, memory] : by_gpu) all += memory;
  return all;
}

std::string park_record_head(Memory most) { return fmt::format("{} {}\n", kMost, most.bytes); }

ParkRecord parse_park_record(std::string_view text) {
  ParkRecord record;
  std::map<std::pair<std::string, std::string>, Memory> of_process;  // by GPU and pid
  const std::size_t whole = text.rfind('\n');
  const std::string_view lines = text.substr(0, whole == std::string_view::npos ? 0 : whole);
  for (const std::string_view line : split(lines, '\n')) {
    const auto words = split(line, ' ');
    const auto bytes = parse_bytes(words.back());
    if (!bytes) continue;
    if (words.size() == 2 && words[0] == kMost) record.most = *bytes;
    if (words.size() == 3) of_process[{std::string(words[1]), std::string(words[0])}] = *bytes;
  }
  for (const auto& [process, memory] : of_process) record.by_gpu[process.first] += memory;
  return record;
}

}  // namespace gflow::runner
