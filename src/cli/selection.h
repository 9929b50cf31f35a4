// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/zone.h"
#include "client/client.h"
#include "command/command.h"
#include "core/job.h"

/// Which jobs a command means.
namespace gflow::cli {

/// Finds the caller's newest job (0), the one before it (1), ...
using Newest = std::function<Result<JobId>(std::uint64_t back)>;
[[nodiscard]] Newest newest_of(client::Client& daemon);

/// "42", "@", "@~1".
[[nodiscard]] Result<JobId> resolve_job(std::string_view text, const Newest& newest);
/// "42 1-5 7,9 @": sorted, without duplicates.
[[nodiscard]] Result<std::vector<JobId>> resolve_jobs(std::span<const std::string> words,
                                                      const Newest& newest);
/// The same of jobs of this daemon; where it stands for a cluster, also "train" and
/// "default/train", which is a pod of the namespace of the context, or of another; * and ? are
/// wildcards. What could be an id is one.
[[nodiscard]] Result<std::vector<JobId>> resolve_jobs(std::span<const std::string> words,
                                                      client::Client& daemon);
/// One of them.
[[nodiscard]] Result<JobId> resolve_job(const std::string& word, client::Client& daemon);

/// What jobs are selected by: the value of an option, "" if it is not there. Errors: Usage for one
/// that is there and says nothing, as an unset variable of a shell does: that would mean all jobs.
[[nodiscard]] Result<std::string> selected_by(const Invocation& invocation,
                                              std::string_view option);
/// "Running,PD". Errors: Usage for a name that is none.
[[nodiscard]] Result<StatusSet> parse_statuses(std::string_view text);
/// The pieces of a list separated by commas, without empty ones.
[[nodiscard]] std::vector<std::string> parse_list(std::string_view text);
/// The same of users; empty for "all" and "*" too, which are everyone.
[[nodiscard]] std::vector<std::string> parse_users(std::string_view text);
/// "2h", "3d", "today", "yesterday" (local), a date or RFC 3339: a time in the past.
[[nodiscard]] Result<WallTime> parse_since(std::string_view text, WallTime now, const Zone& zone);

/// Everything that matches, at most `most` jobs, as one page.
[[nodiscard]] Result<api::JobPage> fetch_jobs(client::Client& daemon,
                                              JobQuery query,
                                              std::size_t most = static_cast<std::size_t>(-1));

}  // namespace gflow::cli
