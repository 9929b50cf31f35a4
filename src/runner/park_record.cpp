// SPDX-License-Identifier: Apache-2.0
#include "runner/park_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "base/text.h"

namespace gflow::runner {
namespace {

constexpr std::string_view kMost = "most";
constexpr std::string_view kOnto = "onto";
constexpr std::string_view kBack = "back";

std::optional<Memory> parse_bytes(std::string_view text) {
  const auto number = parse_number(text);
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 50;  // so that sums of them fit
  if (!number || *number > kLargest) return std::nullopt;
  return Memory{static_cast<std::int64_t>(*number)};
}

/// "onto FROM TO", "back FROM TO why".
std::optional<ParkRecord::Move> parse_move(std::string_view line) {
  constexpr std::size_t kWords = 3;
  const auto words = split(line, ' ');
  if (words.size() < kWords || (words[0] != kOnto && words[0] != kBack)) return std::nullopt;
  const std::size_t rest = words[0].size() + words[1].size() + words[2].size() + kWords;
  return ParkRecord::Move{.from = std::string(words[1]),
                          .to = std::string(words[2]),
                          .is_back = words[0] == kBack,
                          .why = std::string(line.substr(std::min(rest, line.size())))};
}

}  // namespace

Memory ParkRecord::taken() const {
  Memory all{};
  for (const auto& [gpu, memory] : by_gpu) all += memory;
  return all;
}

std::string park_record_head(Memory most) { return fmt::format("{} {}\n", kMost, most.bytes); }

std::string park_record_line(const ParkRecord::Move& move) {
  return fmt::format("{} {} {} {}\n", move.is_back ? kBack : kOnto, move.from, move.to, move.why);
}

ParkRecord parse_park_record(std::string_view text) {
  ParkRecord record;
  std::map<std::pair<std::string, std::string>, Memory> of_process;  // by GPU and pid
  const std::size_t whole = text.rfind('\n');
  const std::string_view lines = text.substr(0, whole == std::string_view::npos ? 0 : whole);
  for (const std::string_view line : split(lines, '\n')) {
    if (auto move = parse_move(line)) {
      record.move = std::move(move);
      continue;
    }
    const auto words = split(line, ' ');
    const auto bytes = parse_bytes(words.back());
    if (!bytes) continue;
    if (words.size() == 2 && words[0] == kMost) record.most = *bytes;
    if (words.size() != 3) continue;
    // One that was brought elsewhere is not where it was noted before.
    std::erase_if(of_process, [&](const auto& one) {
      return record.move && one.first.second == words[0] && one.first.first != words[1];
    });
    of_process[{std::string(words[1]), std::string(words[0])}] = *bytes;
  }
  for (const auto& [process, memory] : of_process) record.by_gpu[process.first] += memory;
  return record;
}

}  // namespace gflow::runner
