// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/job.h"

namespace gflow {

/// The tasks of an array that one entry of a submission stands for: they are numbered first,
/// first + step, ...
struct TaskRange {
  std::uint64_t first = 1;
  std::uint64_t count = 1;
  std::uint64_t step = 1;

  [[nodiscard]] std::uint64_t number(std::uint64_t i) const { return first + i * step; }
  friend bool operator==(const TaskRange&, const TaskRange&) = default;
};
/// The highest number a task has.
constexpr std::uint64_t kMaxTaskNumber = 4'000'000'000;

/// How jobs one behind the other are called.
struct Naming {
  bool by_id = false;      ///< each as made_up_name() says
  std::uint32_t step = 0;  ///< else: by how much the number behind the last "_" goes up; 0: alike

  friend bool operator==(const Naming&, const Naming&) = default;
};
/// The name of the job so many after the one of this name and id.
[[nodiscard]] std::string name_after(std::string_view name,
                                     JobId id,
                                     Naming naming,
                                     std::uint64_t count);
/// The name of the job so many before the one of this name and id; nothing if there can be none.
[[nodiscard]] std::optional<std::string> name_before(std::string_view name,
                                                     JobId id,
                                                     Naming naming,
                                                     std::uint64_t count);
/// "NAME_NUMBER"; "" where the jobs of an array have no name.
[[nodiscard]] std::string task_name(std::string_view name, std::uint64_t number);
/// How the tasks of an array are called whose jobs have this name; "": they have none.
[[nodiscard]] Naming naming_of(std::string_view name, const TaskRange& tasks);

/// Jobs with ids one behind the other that are alike in all but id and name, as those of an array
/// are until they start.
struct JobRange {
  Job first;
  std::uint64_t count = 1;
  Naming naming{};

  [[nodiscard]] JobId id(std::uint64_t i) const { return JobId(first.id.value + i); }
  [[nodiscard]] JobId last() const { return id(count - 1); }
  [[nodiscard]] std::string name(std::uint64_t i) const {
    return name_after(first.spec.name, first.id, naming, i);
  }
  [[nodiscard]] Job at(std::uint64_t i) const;
  /// `most` of them, from the i-th on.
  [[nodiscard]] JobRange part(std::uint64_t i, std::uint64_t most) const;

  friend bool operator==(const JobRange&, const JobRange&) = default;
};
/// Of all of them, as of a job.
[[nodiscard]] std::int64_t bytes_of(const JobRange& range);

}  // namespace gflow
