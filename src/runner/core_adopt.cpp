// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "base/kept_sentence.h"
#include "base/proc_text.h"
#include "base/text.h"
#include "os/file.h"
#include "runner/core.h"
#include "runner/isolation.h"
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

/// Whether a process is the shim of the attempt in a directory, by its arguments. In a container
/// the same path is another directory.
Result<bool> is_shim_of(int pid, const std::string& directory) {
  const std::string process = "/proc/" + std::to_string(pid);
  const auto text = GF_TRY(os::read_if_exists(process + "/cmdline"));
  if (!text) return false;
  const auto words = split(*text, '\0');
  if (words.size() < 2 || !words[0].ends_with("gflow-shim") || words[1] != directory) return false;
  const auto status = GF_TRY(os::read_if_exists(process + "/status"));
  return status && !is_in_inner_namespace(*status);
}

/// Whether the shim that claimed an attempt lives. One that ends has let go of its locks before it
/// is gone.
Result<bool> lives(const attempt::ShimClaim& claim) {
  if (claim.pid <= 0) return false;
  const auto facts = GF_TRY(os::find_process(claim.pid));
  const bool is_it = facts && facts->start_time == claim.start_time;
  return is_it && !facts->is_dead() && !facts->exiting;
}

/// Whether a process holds the lock of any file.
Result<bool> holds_a_lock(int pid) {
  const std::string directory = "/proc/" + std::to_string(pid) + "/fdinfo";
  for (const std::string& name : GF_TRY(os::names_in(directory))) {
    const auto text = GF_TRY(os::read_if_exists(directory + "/" + name));
    if (text && text->contains("\nlock:")) return true;
  }
  return false;
}

/// Whether nothing of the attempt runs or ever will. A job that runs and that the store does not
/// know (an old backup was put back) is left alone, and what it uses is seen as used by a stranger;
/// so is one of which that is not known.
bool may_be_removed(const AttemptFiles& files) {
  auto claim = files.claim();
  if (claim && !*claim) {
    if (!files.revoke()) return false;
    claim = files.claim();
  }
  if (!claim) return false;
  if (!is_shims(*claim)) return true;
  const auto record = files.exit_record();
  const auto supervised = files.is_supervised();
  return record && supervised && (*record || !*supervised);
}

}  // namespace

Adoption Runner::Core::adopt(Key key, const Adopting& known) {
  if (const auto found = attempts.find(key); found != attempts.end() && !found->second.adopting) {
    const Watched& its = found->second;
    return still_runs(key, its.files.started_pid().value_or(its.first_pid));
  }
  auto adoption = find_out(key, known);
  if (!adoption) {
    Watched& watched = watch_known(key, std::nullopt);
    watched.adopting = known;
    doubt(watched, adoption.error().message);
    return Unknown{adoption.error().message};
  }
  if (const auto* runs = std::get_if<StillRuns>(&*adoption)) return still_runs(key, runs->pid);
  drop(key);
  return *adoption;
}

/// What cannot be read of its GPU memory is found out when it is suspended or resumed.
StillRuns Runner::Core::still_runs(Key key, int pid) const {
  const AttemptFiles files(options.attempts_dir, key.first, key.second);
  const auto record = files.park_record();
  StillRuns runs{.pid = pid, .watches = files.watches()};
  if (const auto its = attempts.find(key); its != attempts.end()) {
    runs.isolation = its->second.isolation;
  }
  if (record) runs.parked = {record->how, record->taken(), record->refused};
  return runs;
}

Result<Adoption> Runner::Core::find_out(Key key, const Adopting& known) {
  const AttemptFiles files(options.attempts_dir, key.first, key.second);
  if (const auto record = GF_TRY(files.exit_record())) return Over{outcome_of(*record)};
  if (known.boot_id != options.boot_id) {
    return lost(EndReason::Rebooted, kept<Kept::MachineRestarted>());
  }
  // Nothing is started before its directory is there, and nothing makes it later.
  if (!GF_TRY(files.exist())) return adopt_without_directory(key, known.started);
  if (!GF_TRY(files.claim())) GF_CHECK(files.revoke());
  const auto claim = GF_TRY(files.claim());
  if (!is_shims(claim)) return NeverRan{};
  return adopt_claimed(key, std::get<attempt::ShimClaim>(*claim));
}

Watched& Runner::Core::watch_known(Key key, const std::optional<attempt::Order>& order) {
  const auto found = attempts.find(key);
  Watched& watched = found != attempts.end() ? found->second : watch(key.first, key.second, 0, {});
  if (order) {
    watched.traces = traces_of(*order);
    watched.kill_cgroup = order->kill_cgroup;
    watched.freeze_cgroup = order->freeze_cgroup;
    watched.isolation = isolation_of(*order);
    watched.expected.set_grace(order->grace);
  } else if (watched.traces.cgroups.empty()) {
    watched.traces.cgroups = cgroups.groups_of(attempt_name(key.first, key.second));
  }
  return watched;
}

Result<Adoption> Runner::Core::adopt_claimed(Key key, const attempt::ShimClaim& claim) {
  const AttemptFiles files(options.attempts_dir, key.first, key.second);
  const auto order = GF_TRY(files.order());
  const int first = GF_TRY(files.started_pid());
  if (GF_TRY(files.is_supervised())) {
    os::Fd process = GF_TRY(open_to_watch(claim.pid));
    const auto facts = GF_TRY(os::find_process(claim.pid));
    if (!process.valid() || !facts || facts->start_time != claim.start_time) {
      return fail(Code::WrongState, "its lock is held, but not by the supervisor that claimed it");
    }
    Watched& watched = watch_known(key, order);
    watched.started = true;
    watched.shim = std::move(process);
    watched.shim_pid = claim.pid;
    by_shim[claim.pid] = watched.job;
    watched.adopting.reset();
    doubtful.erase(key);
    watch_shim(watched);
    if (attempts.contains(key)) expect_first_process(attempts.at(key), first);
    return StillRuns{first};
  }
  // It may have written its record since we looked.
  if (const auto record = GF_TRY(files.exit_record())) return Over{outcome_of(*record)};
  if (GF_TRY(lives(claim))) {
    if (!GF_TRY(holds_a_lock(claim.pid))) {
      return fail(Code::WrongState, "its supervisor holds no lock, and has not ended");
    }
    // What it locks is another directory, of which this is a copy: the job is not ours to kill.
    return lost(EndReason::SupervisorDied, kept<Kept::RunsElsewhere>(claim.pid));
  }
  Watched& watched = watch_known(key, order);
  watched.started = true;
  if (GF_TRY(kill_survivors(watched))) {
    watched.adopting.reset();
    doubtful.erase(key);
    return StillRuns{first};
  }
  if (!GF_TRY(files.may_have_run())) return NeverRan{};
  return lost(EndReason::SupervisorDied, kept<Kept::SupervisorKilledMeanwhile>());
}

/// Somebody removed it, or it was never made. Its shim lives on without it.
Result<Adoption> Runner::Core::adopt_without_directory(Key key, bool started) {
  const std::string directory =
      AttemptFiles(options.attempts_dir, key.first, key.second).directory();
  for (const std::string& name : GF_TRY(os::names_in("/proc"))) {
    const auto number = parse_number(name);
    if (!number) continue;
    const int pid = static_cast<int>(*number);
    if (!GF_TRY(is_shim_of(pid, directory))) continue;
    os::Fd process = GF_TRY(open_to_watch(pid));
    if (!process.valid() || !GF_TRY(is_shim_of(pid, directory))) continue;
    Watched& watched = watch_known(key, std::nullopt);
    watched.started = true;
    watched.shim = std::move(process);
    watched.shim_pid = pid;
    by_shim[pid] = watched.job;
    watched.adopting.reset();
    doubtful.erase(key);
    watch_shim(watched);
    return StillRuns{};
  }
  if (!started) return NeverRan{};
  if (GF_TRY(kill_survivors(watch_known(key, std::nullopt)))) {
    Watched& watched = attempts.at(key);
    watched.started = true;
    watched.adopting.reset();
    doubtful.erase(key);
    return StillRuns{};
  }
  return lost(EndReason::SupervisorDied, kept<Kept::DirectoryRemoved>());
}

void Runner::Core::sweep(const std::vector<Key>& known) {
  const std::set<Key> keep(known.begin(), known.end());
  for (const std::string& name :
       os::names_in(options.attempts_dir).value_or(std::vector<std::string>{})) {
    const auto key = parse_attempt_name(name);
    if (!key || keep.contains(*key) || attempts.contains(*key)) continue;
    if (may_be_removed(AttemptFiles(options.attempts_dir, key->first, key->second))) forget(*key);
  }
  cgroups.remove_others([&](const std::string& name) {
    const auto key = parse_attempt_name(name);
    // One that was made before there was an attempt: none is left if nobody is in it.
    const bool waits = standby && standby->groups.front().ends_with(name);
    if (!key) return waits || !name.starts_with(Cgroups::kReady);
    return AttemptFiles(options.attempts_dir, key->first, key->second).exist().value_or(true);
  });
}

std::optional<JobId> Runner::Core::owner_of(int pid) const {
  constexpr int kDeepest = 4096;
  for (int depth = 0; depth < kDeepest && pid > 1; ++depth) {
    if (const auto found = by_shim.find(pid); found != by_shim.end()) return found->second;
    const auto facts = os::process_facts(pid);
    if (!facts) return std::nullopt;
    pid = facts->parent;
  }
  return std::nullopt;
}

}  // namespace gflow::runner
