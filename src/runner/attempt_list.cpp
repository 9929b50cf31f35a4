// SPDX-License-Identifier: Apache-2.0
#include "runner/attempt_list.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "os/file.h"
#include "runner/attempt_files.h"

namespace gflow::runner {
namespace {

Result<bool> is_running(const AttemptFiles& files) {
  const auto claim = GF_TRY(files.claim());
  if (!claim || !std::holds_alternative<attempt::ShimClaim>(*claim)) return false;
  const bool supervised = GF_TRY(files.is_supervised());
  if (!supervised) return false;
  return !GF_TRY(files.exit_record()).has_value();
}

}  // namespace

Result<std::vector<std::pair<JobId, int>>> list_attempts(const std::string& attempts_dir) {
  std::vector<std::pair<JobId, int>> attempts;
  const auto names = os::names_in(attempts_dir);
  if (!names && names.error().code == Code::NotFound) return attempts;
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (const auto key = parse_attempt_name(name)) attempts.push_back(*key);
  }
  std::ranges::sort(attempts);
  return attempts;
}

Result<std::vector<std::pair<JobId, int>>> list_supervised(const std::string& attempts_dir) {
  std::vector<std::pair<JobId, int>> supervised;
  for (const auto& [job, attempt] : GF_TRY(list_attempts(attempts_dir))) {
    const bool runs = GF_TRY(is_running(AttemptFiles(attempts_dir, job, attempt)));
    if (runs) supervised.emplace_back(job, attempt);
  }
  return supervised;
}

}  // namespace gflow::runner
