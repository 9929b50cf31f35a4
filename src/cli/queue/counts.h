// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "api/status_counts.h"
#include "api/types.h"
#include "client/client.h"
#include "core/job_query.h"

namespace gflow::cli {

/// Where a job stands in the order of a screen.
enum class Part { Running, Suspended, Waiting, Held, Ended };
[[nodiscard]] Part part_of(Status status);

/// How many jobs there are in each state: of all, and of who looks at them.
struct JobCounts {
  api::StatusCounts all;
  api::StatusCounts own;

  void add(const api::JobView& job, const std::string& user);
  [[nodiscard]] std::uint64_t total() const;
};
[[nodiscard]] JobCounts counts_of(const api::JobPage& page, const std::string& user);

/// How many jobs match the query, whatever its limit; `user` has those that are their own. Of all
/// jobs the daemon has counted them; else as much of each is read as that takes. Errors: the
/// daemon's.
[[nodiscard]] Result<JobCounts> count_jobs(client::Client& daemon,
                                           JobQuery query,
                                           const std::string& user);

/// "2 running, 30 waiting, 1 held (yours: 1 running)", as much of it as has room; before it how
/// many of them are listed where that is not all: "3 of 33 jobs listed; in all: ...".
[[nodiscard]] std::string counts_text(const JobCounts& counts,
                                      std::optional<std::size_t> listed,
                                      std::size_t columns);

}  // namespace gflow::cli
