// SPDX-License-Identifier: Apache-2.0
#include "core/slurm_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace gflow::slurm {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kMostDays = 366'000;
constexpr std::uint64_t kMostOfPart = 10'000'000;  // minutes of a limit that has no hours
constexpr std::int64_t kMostGpus = 1'000'000;

/// "04" or "04.250"
std::optional<milliseconds> seconds_in(std::string_view text) {
  const std::size_t point = text.find('.');
  const auto whole = parse_number(text.substr(0, point));
  if (!whole || *whole > kMostOfPart) return {};
  milliseconds read(static_cast<std::int64_t>(*whole) * 1000);
  if (point == std::string_view::npos) return read;
  const auto thousandths = parse_number(text.substr(point + 1));
  if (!thousandths || text.size() - point - 1 != 3) return {};
  return read + milliseconds(static_cast<std::int64_t>(*thousandths));
}

}  // namespace

std::vector<std::string_view> fields_between(std::string_view text, char separator) {
  std::vector<std::string_view> fields;
  while (true) {
    const std::size_t end = text.find(separator);
    fields.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return fields;
    text.remove_prefix(end + 1);
  }
}

std::optional<WallTime> read_time(std::string_view text) {
  constexpr std::size_t kSize = 19;  // of 2026-03-01T12:00:00
  if (text.size() != kSize) return {};
  const auto read = parse_rfc3339(std::string(text) + "Z");
  return read ? std::optional(*read) : std::nullopt;
}

std::optional<milliseconds> read_span(std::string_view text) {
  std::uint64_t days = 0;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const auto read = parse_number(text.substr(0, dash));
    if (!read || *read > kMostDays) return {};
    days = *read;
    text.remove_prefix(dash + 1);
  }
  const std::vector<std::string_view> parts = fields_between(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return {};
  const auto seconds = seconds_in(parts.back());
  if (!seconds) return {};
  std::uint64_t minutes = days * 24 * 60;
  std::uint64_t unit = 1;
  for (std::size_t i = parts.size() - 1; i-- > 0; unit *= 60) {
    const auto read = parse_number(parts[i]);
    if (!read || *read > kMostOfPart) return {};
    minutes += *read * unit;
  }
  return *seconds + std::chrono::minutes(static_cast<std::int64_t>(minutes));
}

std::int64_t count_of_tres(std::string_view tres, std::string_view kind) {
  for (const std::string_view one : fields_between(tres, ',')) {
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos || one.substr(0, equals) != kind) continue;
    const auto count = parse_number(one.substr(equals + 1));
    return count ? static_cast<std::int64_t>(std::min<std::uint64_t>(*count, kMostGpus)) : 0;
  }
  return 0;
}

GpuCount gpus_of_tres(std::string_view tres) {
  constexpr std::string_view kTyped = "gres/gpu:";
  std::int64_t of_types = 0;
  std::vector<std::string> models;
  for (const std::string_view one : fields_between(tres, ',')) {
    if (!one.starts_with(kTyped)) continue;
    const std::string_view name = one.substr(0, one.find('='));
    of_types += count_of_tres(one, name);
    models.emplace_back(name.substr(kTyped.size()));
  }
  const std::int64_t all = std::max(count_of_tres(tres, "gres/gpu"), of_types);
  return {models.size() == 1 ? models.front() : "", static_cast<int>(std::min(all, kMostGpus))};
}

}  // namespace gflow::slurm
