// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <set>
#include <system_error>

#include "runner/core.h"
#include "runner/outcome.h"
#include "runner/processes.h"

namespace gflow::runner {
namespace {

Over lost(EndReason reason, std::string message) {
  return Over{outcome_without_record(reason, std::move(message))};
}

bool is_shims(const std::optional<attempt::Claim>& claim) {
  return claim && std::holds_alternative<attempt::ShimClaim>(*claim);
}

}  // namespace

Adoption Runner::Core::adopt(JobId job, int attempt, const std::string& boot_id) {
  const AttemptFiles files(options.attempts_dir, job, attempt);
  if (attempts.contains({job, attempt})) return StillRuns{files.started_pid()};
  if (const auto record = files.exit_record()) return Over{outcome_of(*record)};
  if (boot_id != options.boot_id) {
    return lost(EndReason::Rebooted, "the machine was restarted while the job ran");
  }
  // Nothing is started before its directory is there, and nothing makes it later.
  if (!files.exist()) return NeverRan{};
  if (!files.claim()) {
    const auto revoked = files.revoke();
    if (!revoked) return lost(EndReason::LaunchFailed, revoked.error().message);
  }
  const auto claim = files.claim();
  if (!is_shims(claim)) return NeverRan{};
  Watched& watched = watch(job, attempt, 0, {});
  return adopt_claimed(watched, std::get<attempt::ShimClaim>(*claim));
}

Adoption Runner::Core::adopt_claimed(Watched& watched, const attempt::ShimClaim& claim) {
  const Key key(watched.job, watched.attempt);
  if (watched.files.is_supervised()) {
    os::Fd process = open_process(claim.pid);
    const auto facts = process_facts(claim.pid);
    if (process.valid() && facts && facts->start_time == claim.start_time) {
      watched.shim = std::move(process);
      watched.shim_pid = claim.pid;
      by_shim[claim.pid] = watched.job;
      (void)listen(watched, Source::Shim, watched.shim);
      return StillRuns{watched.files.started_pid()};
    }
  }
  // The shim is no more. It may have written its record since we looked.
  if (const auto record = watched.files.exit_record()) {
    by_serial.erase(watched.serial);
    attempts.erase(key);
    return Over{outcome_of(*record)};
  }
  if (kill_survivors(watched)) return StillRuns{watched.files.started_pid()};
  by_serial.erase(watched.serial);
  attempts.erase(key);
  return lost(
      EndReason::SupervisorDied,
      "its supervisor was killed while the daemon was down; how the job ended is not known");
}

void Runner::Core::sweep(const std::vector<Key>& known) {
  const std::set<Key> keep(known.begin(), known.end());
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(options.attempts_dir, error)) {
    const auto key = parse_attempt_name(entry.path().filename().native());
    if (!key || keep.contains(*key) || attempts.contains(*key)) continue;
    const AttemptFiles files(options.attempts_dir, key->first, key->second);
    if (!files.claim()) (void)files.revoke();
    // A job that runs and that the store does not know (an old backup was put back): it is left
    // alone, and what it uses is seen as used by a stranger.
    if (is_shims(files.claim()) && files.is_supervised() && !files.exit_record()) continue;
    forget(*key);
  }
  cgroups.remove_others([&](const std::string& name) {
    const auto key = parse_attempt_name(name);
    if (!key) return true;
    return AttemptFiles(options.attempts_dir, key->first, key->second).exist();
  });
}

std::optional<JobId> Runner::Core::owner_of(int pid) const {
  constexpr int kDeepest = 4096;
  for (int depth = 0; depth < kDeepest && pid > 1; ++depth) {
    if (const auto found = by_shim.find(pid); found != by_shim.end()) return found->second;
    const auto facts = process_facts(pid);
    if (!facts) return std::nullopt;
    pid = facts->parent;
  }
  return std::nullopt;
}

}  // namespace gflow::runner
