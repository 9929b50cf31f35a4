// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/zone.h"
#include "core/job.h"

/// Readers of what people type, shared by the command line, scripts and REST.
/// Every error is Code::Usage, names the text and says what would be right.
namespace gflow {

[[nodiscard]] Result<int> parse_priority(std::string_view text);

/// "42", "1,3,5-7" in any order; sorted and without duplicates. At most 100,000 ids.
[[nodiscard]] Result<std::vector<JobId>> parse_job_ids(std::string_view text);

/// A reference to a job: a number, "@" (the newest of the user), "@~N" (the N-th before it).
struct JobReference {
  std::optional<JobId> id;        ///< set for a number
  std::uint64_t newest_back = 0;  ///< else how many before the newest
};
[[nodiscard]] Result<JobReference> parse_job_reference(std::string_view text);

/// "now+2h", "+30" (minutes), "22:00" (next occurrence), "2026-03-01", "2026-03-01T12:00[:00]",
/// RFC 3339 with an offset. Times without one are those of the zone, on the date that is meant.
[[nodiscard]] Result<WallTime> parse_begin(std::string_view text, WallTime now, const Zone& zone);

/// One "# GFLOW --gpus 2" or "#GFLOW --gpus=2" line of a script.
struct Directive {
  int line = 0;                    ///< from 1
  std::vector<std::string> words;  ///< "--gpus", "2"
};
struct Directives {
  std::vector<Directive> gflow;
  std::vector<Directive> slurm;  ///< "#SBATCH" lines
};
/// The directives of a script: comment lines before the first command.
[[nodiscard]] Result<Directives> read_directives(std::string_view script);

/// A name for a job that was given none: two words and four digits, from the number alone.
[[nodiscard]] std::string made_up_name(std::uint64_t seed);
/// Errors: longer than 128 characters, with some that cannot be seen, not UTF-8, empty.
[[nodiscard]] Result<std::string> check_name(std::string_view name);

}  // namespace gflow
