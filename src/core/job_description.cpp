// SPDX-License-Identifier: Apache-2.0
#include "core/job_description.h"

#include <fmt/format.h>

#include <optional>

namespace gflow {
namespace {

/// What a range is about; nothing for what is not a number.
template <class T>
std::optional<std::int64_t> number_in(const T& value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::is_same_v<T, Memory>) {
    return value.bytes;
  } else if constexpr (std::is_same_v<T, Share>) {
    return value.parts;
  } else if constexpr (requires { value.count(); }) {
    return value.count();
  } else if constexpr (requires { number_in(*value); }) {
    return value ? number_in(*value) : std::nullopt;
  } else {
    return std::nullopt;
  }
}

}  // namespace

Result<void> check_ranges(const JobSpec& spec) {
  Result<void> checked;
  each_leaf(
      [&checked](const auto& row, const auto& value) {
        const auto number = number_in(value);
        if (!checked || !number || row.range.contains(*number)) return;
        checked = fail(Code::Usage,
                       fmt::format("{} {} is not within {} and {}",
                                   field_words(row.name),
                                   *number,
                                   row.range.least,
                                   row.range.most));
      },
      spec);
  return checked;
}

void hide_private(JobSpec& spec) {
  static const JobSpec empty;
  each_leaf(
      [](const auto& row, auto& value, const auto& nothing) {
        if (row.sight == Sight::Owner) value = nothing;
      },
      spec,
      empty);
}

}  // namespace gflow
