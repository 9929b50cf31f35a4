// SPDX-License-Identifier: Apache-2.0
#include "core/job_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "core/requests.h"

namespace gflow {

std::string name_ahead(std::string_view name, JobId id, Naming naming, std::uint64_t ahead) {
  if (naming.by_id) return made_up_name(id.value + ahead);
  if (naming.step == 0 || ahead == 0) return std::string(name);
  const std::size_t number = name.rfind('_') + 1;
  const std::uint64_t first = parse_number(name.substr(number)).value_or(0);
  return fmt::format("{}{}", name.substr(0, number), first + ahead * naming.step);
}

std::optional<std::string> name_behind(std::string_view name,
                                       JobId id,
                                       Naming naming,
                                       std::uint64_t behind) {
  if (naming.by_id) return made_up_name(id.value - behind);
  if (naming.step == 0) return std::string(name);
  const std::size_t number = name.rfind('_') + 1;
  const auto last = parse_number(name.substr(number));
  if (number == 0 || !last || *last / naming.step < behind) return std::nullopt;
  return fmt::format("{}{}", name.substr(0, number), *last - behind * naming.step);
}

std::string task_name(std::string_view name, std::uint64_t number) {
  return name.empty() ? "" : fmt::format("{}_{}", name, number);
}

Naming naming_of(std::string_view name, const TaskRange& tasks) {
  if (name.empty()) return {.by_id = true};
  return {.step = static_cast<std::uint32_t>(tasks.step)};
}

Job JobRun::at(std::uint64_t i) const {
  Job job = first;
  job.id = id(i);
  job.spec.name = name(i);
  return job;
}

JobRun JobRun::part(std::uint64_t i, std::uint64_t most) const {
  return {.first = at(i), .count = std::min(most, count - i), .naming = naming};
}

std::int64_t bytes_of(const JobRun& run) {
  const auto size = static_cast<std::int64_t>(run.first.spec.name.size());
  const std::int64_t but_for_name = bytes_of(run.first) - size;
  std::int64_t bytes = but_for_name * static_cast<std::int64_t>(run.count);
  if (run.naming == Naming{}) return bytes + size * static_cast<std::int64_t>(run.count);
  for (std::uint64_t i = 0; i < run.count; ++i) {
    bytes += static_cast<std::int64_t>(run.name(i).size());
  }
  return bytes;
}

}  // namespace gflow
