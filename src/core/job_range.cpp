// SPDX-License-Identifier: Apache-2.0
#include "core/job_range.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/requests.h"

namespace gflow {

std::string name_after(std::string_view name, JobId id, Naming naming, std::uint64_t count) {
  if (naming.by_id) return made_up_name(id.value + count);
  if (naming.step == 0 || count == 0) return std::string(name);
  const std::size_t number = name.rfind('_') + 1;
  const std::uint64_t first = parse_number(name.substr(number)).value_or(0);
  return fmt::format("{}{}", name.substr(0, number), first + count * naming.step);
}

std::optional<std::string> name_before(std::string_view name,
                                       JobId id,
                                       Naming naming,
                                       std::uint64_t count) {
  if (naming.by_id) return made_up_name(id.value - count);
  if (naming.step == 0) return std::string(name);
  const std::size_t number = name.rfind('_') + 1;
  const auto last = parse_number(name.substr(number));
  if (number == 0 || !last || *last / naming.step < count) return std::nullopt;
  return fmt::format("{}{}", name.substr(0, number), *last - count * naming.step);
}

std::string task_name(std::string_view name, std::uint64_t number) {
  return name.empty() ? "" : fmt::format("{}_{}", name, number);
}

Naming naming_of(std::string_view name, const TaskRange& tasks) {
  if (name.empty()) return {.by_id = true};
  return {.step = static_cast<std::uint32_t>(tasks.step)};
}

Job JobRange::at(std::uint64_t i) const {
  Job job = first;
  job.id = id(i);
  job.spec.name = name(i);
  return job;
}

JobRange JobRange::part(std::uint64_t i, std::uint64_t most) const {
  return {.first = at(i), .count = std::min(most, count - i), .naming = naming};
}

namespace {

/// The digits of `count` numbers, `step` apart.
std::uint64_t digits_of(std::uint64_t first, std::uint64_t count, std::uint64_t step) {
  std::uint64_t digits = 0;
  for (std::uint64_t length = 1, end = 10; count > 0; ++length, end *= 10) {
    if (first >= end) continue;
    const std::uint64_t as_long = std::min(count, (end - first + step - 1) / step);
    digits += as_long * length;
    count -= as_long;
    first += as_long * step;
  }
  return digits;
}

std::uint64_t bytes_of_names(const JobRange& range) {
  const std::string& first = range.first.spec.name;
  if (range.naming == Naming{} || range.count == 1) return first.size() * range.count;
  if (range.naming.by_id) {
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < range.count; ++i) bytes += range.name(i).size();
    return bytes;
  }
  const std::string second = range.name(1);
  const std::size_t number = second.rfind('_') + 1;
  return first.size() + number * (range.count - 1) +
         digits_of(
             parse_number(second.substr(number)).value_or(0), range.count - 1, range.naming.step);
}

}  // namespace

std::int64_t bytes_of(const JobRange& range) {
  const std::int64_t but_for_name =
      bytes_of(range.first) - static_cast<std::int64_t>(range.first.spec.name.size());
  return but_for_name * static_cast<std::int64_t>(range.count) +
         static_cast<std::int64_t>(bytes_of_names(range));
}

}  // namespace gflow
