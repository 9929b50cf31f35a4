// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/selection.h"
#include "core/job.h"
#include "core/job_description.h"

/// Values of gbatch's options, in gflow's spelling and in Slurm's. Errors: Usage naming the option.
namespace gflow::cli {

/// A number of that range.
[[nodiscard]] Result<int> read_count(std::string_view option,
                                     std::string_view text,
                                     Range range = kCountRange);
/// As parse_duration(); "UNLIMITED", "infinite" and "0" are no limit, as for Slurm.
[[nodiscard]] Result<std::optional<std::chrono::seconds>> read_time_limit(std::string_view text);
/// A bare number is seconds.
[[nodiscard]] Result<std::chrono::seconds> read_grace(std::string_view text);

/// "5", "1,2", "@", "@~1", "afterok:1:2,afterok:3", "afterok:1?afterok:2".
[[nodiscard]] Result<Dependencies> read_dependency(std::string_view text,
                                                   DependencyMode mode,
                                                   const Newest& newest);

/// Slurm's --nice: positive is less urgent. The priority, kept within its bounds.
[[nodiscard]] Result<int> lower_priority(int priority, std::string_view nice);

/// "1-5", "1,3,5-9:2", "0-15%4" (at most 4 at once).
struct Array {
  std::vector<std::uint64_t> tasks = {};  ///< ascending, without duplicates
  std::optional<int> max_concurrent = {};
  friend bool operator==(const Array&, const Array&) = default;
};
[[nodiscard]] Result<Array> read_array(std::string_view text);

/// --export: which of the submitter's variables the job gets.
struct Export {
  enum class Base { All, None };
  Base base = Base::All;
  std::vector<std::string> names = {};  ///< taken over although base is None
  std::vector<std::string> set = {};    ///< "NAME=value"
  friend bool operator==(const Export&, const Export&) = default;
};
[[nodiscard]] Result<Export> read_export(std::string_view text);

}  // namespace gflow::cli
