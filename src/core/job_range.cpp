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

std::int64_t bytes_of(const JobRange& range) {
  const auto size = static_cast<std::int64_t>(range.first.spec.name.size());
  const std::int64_t but_for_name = bytes_of(range.first) - size;
  std::int64_t bytes = but_for_name * static_cast<std::int64_t>(range.count);
  if (range.naming == Naming{}) return bytes + size * static_cast<std::int64_t>(range.count);
  for (std::uint64_t i = 0; i < range.count; ++i) {
    bytes += static_cast<std::int64_t>(range.name(i).size());
  }
  return bytes;
}

}  // namespace gflow
