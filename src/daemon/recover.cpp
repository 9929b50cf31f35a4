// SPDX-License-Identifier: Apache-2.0
#include "daemon/recover.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "core/task_payload.h"
#include "daemon/check_running.h"
#include "daemon/daemon_lock.h"
#include "daemon/rebuilt_job.h"
#include "os/file.h"
#include "os/lock_holder.h"
#include "os/user.h"
#include "runner/attempt_list.h"
#include "store/salvage.h"
#include "store/store.h"

namespace gflow::daemon {
namespace {

constexpr std::size_t kBatch = 1000;

/// A file that jobs can be read from.
struct Source {
  std::string path;
  std::unique_ptr<store::Salvage> content;
};

/// A job to be written, with what it runs.
struct Found {
  Job job;
  std::optional<Payload> payload;
};

/// A directory that is gone at the end, with all in it.
class WorkDirectory {
 public:
  explicit WorkDirectory(std::string path) : path_(std::move(path)) {}
  ~WorkDirectory() { (void)os::remove_tree(path_); }  // a leftover is removed by the next
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// What else fails (no permission, another process has it open, a newer gflow wrote it) says
/// nothing about the file.
bool is_damage(const Error& error) { return error.code == Code::Damaged; }

class Recoverer {
 public:
  Recoverer(const os::Paths& paths, Now now)
      : paths_(paths), now_(now), work_(paths.state_dir + "/recover") {
    recovery_.database = paths.database();
  }

  Result<Recovery> run();

 private:
  [[nodiscard]] Result<std::vector<std::string>> candidates() const;
  [[nodiscard]] Result<void> open_sources();
  [[nodiscard]] Result<void> note_attempts();
  [[nodiscard]] JobId first_free() const;
  [[nodiscard]] Result<std::optional<Found>> find(JobId id);
  [[nodiscard]] Result<std::optional<Found>> read(JobId id);
  [[nodiscard]] Result<std::optional<Payload>> read_payload(JobId id);
  [[nodiscard]] Result<void> bring_up_to_date(Found& found);
  [[nodiscard]] Result<std::chrono::milliseconds> lived();
  [[nodiscard]] Result<void> rebuild(Found& found, int attempt);
  void hold_without_payload(Found& found);
  void miss(JobId id);
  [[nodiscard]] Result<void> write(store::Store& store);
  [[nodiscard]] Result<void> commit(store::Store& store, std::vector<Found>& found);

  const os::Paths& paths_;
  Now now_;
  WorkDirectory work_;
  store::Known known_;
  std::vector<Source> sources_;           ///< that with most in it first
  std::map<JobId, int> newest_attempts_;  ///< that have files
  Recovery recovery_;
};

/// The database, else the damaged ones kept by a run that was cut short, and the backups.
Result<std::vector<std::string>> Recoverer::candidates() const {
  const std::string database = paths_.database();
  std::vector<std::string> paths;
  const bool is_there = GF_TRY(os::is_there(database));
  if (is_there) paths.push_back(database);
  const std::string aside = database.substr(database.rfind('/') + 1) + ".damaged-";
  for (const std::string& name : GF_TRY(os::names_in(paths_.state_dir))) {
    const bool is_kept = name.starts_with(aside) && !name.ends_with("-wal");
    if (is_kept && paths.empty()) paths.push_back(paths_.state_dir + "/" + name);
  }
  for (const store::BackupFile& file : GF_TRY(store::list_backups(database))) {
    paths.push_back(file.path);
  }
  return paths;
}

Result<void> Recoverer::open_sources() {
  for (const std::string& path : GF_TRY(candidates())) {
    const std::string directory = fmt::format("{}/{}", work_.path(), sources_.size());
    GF_CHECK(os::remove_tree(directory));
    GF_CHECK(os::make_directories(directory));
    auto content = store::Salvage::open(path, directory);
    if (content) {
      sources_.push_back({path, std::move(*content)});
    } else if (!is_damage(content.error())) {
      return fail(
          Code::Failure,
          fmt::format("'{}' cannot be read now ({}), and nothing was changed: try again, or "
                      "move it away to recover without it",
                      printable(path),
                      content.error().message));
    } else {
      recovery_.unread.push_back(fmt::format("{}: {}", path, content.error().message));
    }
  }
  std::ranges::stable_sort(sources_, std::ranges::greater(), [](const Source& source) {
    return source.content->commits();
  });
  if (sources_.empty()) return {};
  const store::Salvage& base = *sources_.front().content;
  recovery_.base = sources_.front().path;
  recovery_.complete = base.is_whole() && known_.is_all && base.commits() >= known_.commits;
  return {};
}

Result<void> Recoverer::note_attempts() {
  for (const auto& [job, attempt] : GF_TRY(runner::list_attempts(paths_.attempts_dir()))) {
    newest_attempts_[job] = std::max(newest_attempts_[job], attempt);
  }
  return {};
}

/// Where nobody knows which ids were given out, the logs tell of the jobs that ran after these; not
/// a file that happens to be called as one, of an id that is far off.
JobId after_logs(const std::string& logs_dir, JobId known) {
  namespace fs = std::filesystem;
  constexpr std::string_view kEnding = ".log";
  constexpr std::uint64_t kMostLost = 1'000'000;
  JobId next = known;
  std::error_code error;
  for (fs::directory_iterator at(logs_dir, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.ends_with(kEnding)) continue;
    name.resize(name.size() - kEnding.size());
    const auto id = parse_number(name);
    if (id && *id < known.value + kMostLost) next = std::max(next, JobId(*id + 1));
  }
  return next;
}

JobId Recoverer::first_free() const {
  JobId next = known_.next_id;
  for (const Source& source : sources_) next = std::max(next, source.content->next_id());
  if (!newest_attempts_.empty()) {
    next = std::max(next, JobId(newest_attempts_.rbegin()->first.value + 1));
  }
  return next;
}

/// From the newest file that has it; an older one is asked only where the newest is damaged, or
/// else what was forgotten would come back.
Result<std::optional<Found>> Recoverer::read(JobId id) {
  for (const Source& source : sources_) {
    auto job = source.content->job(id);
    if (!job && !is_damage(job.error())) return std::unexpected(job.error());
    if (job && *job) {
      Found found{std::move(**job), GF_TRY(read_payload(id))};
      if (source.path != recovery_.base) recovery_.from_older.push_back(id);
      return found;
    }
    if (source.content->is_whole()) return std::nullopt;
  }
  return std::nullopt;
}

/// From whichever file still tells: it is the same in all of them.
Result<std::optional<Payload>> Recoverer::read_payload(JobId id) {
  for (const Source& source : sources_) {
    auto payload = source.content->payload(id);
    if (payload) return std::move(*payload);
    if (!is_damage(payload.error())) return std::unexpected(payload.error());
  }
  return std::nullopt;
}

/// The time gflow had seen pass, as far as a file tells.
Result<std::chrono::milliseconds> Recoverer::lived() {
  if (sources_.empty()) return std::chrono::milliseconds(0);
  return GF_TRY(sources_.front().content->lived()).total;
}

Result<void> Recoverer::rebuild(Found& found, int attempt) {
  auto rebuilt = GF_TRY(rebuild_job(paths_.attempts_dir(), found.job.id, attempt, now_));
  if (!rebuilt) return {};
  Job& job = found.job;
  if (job.spec.user.name.empty()) job.spec = std::move(rebuilt->job.spec);
  if (job.submitted == WallTime()) {
    job.submitted = rebuilt->job.submitted;
    job.lived = GF_TRY(lived()) - std::max(now_.wall - job.submitted, std::chrono::milliseconds(0));
  }
  job.state = std::move(rebuilt->job.state);
  job.attempts = attempt;
  if (!found.payload) found.payload = std::move(rebuilt->payload);
  recovery_.from_attempts.push_back(job.id);
  return {};
}

/// What happened to a job after the file it was read from was written, as far as attempts and logs
/// tell. Nothing is started a second time on a guess.
Result<void> Recoverer::bring_up_to_date(Found& found) {
  Job& job = found.job;
  const auto attempt = newest_attempts_.find(job.id);
  if (attempt != newest_attempts_.end()) {
    const bool known = is_active(job) && attempt_of(job)->number == attempt->second;
    if (!known && (attempt->second > job.attempts || !is_ended(job))) {
      return rebuild(found, attempt->second);
    }
    return {};
  }
  if (recovery_.complete) return {};
  const std::string log = fmt::format("{}/{}.log", paths_.logs_dir, job.id.value);
  if (is_active(job)) {
    const auto seen = GF_TRY(lived());
    Outcome outcome;
    outcome.reason = EndReason::SupervisorDied;
    outcome.message = kept<Kept::LostWithDatabase>();
    job.state = Ended{Status::Lost, std::move(outcome), now_.wall, *attempt_of(job), seen};
    recovery_.ended.push_back(job.id);
  } else if (is_pending(job) && os::is_there(log).value_or(true)) {
    job.state = Held{kept<Kept::MayHaveRun>()};
    recovery_.held.push_back(job.id);
  }
  return {};
}

void Recoverer::hold_without_payload(Found& found) {
  if (found.payload) return;
  found.payload = Payload{};
  if (is_ended(found.job)) return;  // it is not kept then
  recovery_.without_payload.push_back(found.job.id);
  if (is_pending(found.job)) {
    found.job.state = Held{kept<Kept::PayloadLost>()};
  }
}

Result<std::optional<Found>> Recoverer::find(JobId id) {
  auto found = GF_TRY(read(id));
  if (!found) {
    const auto attempt = newest_attempts_.find(id);
    if (attempt == newest_attempts_.end()) return std::nullopt;
    Found unknown;
    unknown.job.id = id;
    GF_CHECK(rebuild(unknown, attempt->second));
    if (unknown.job.spec.user.name.empty()) return std::nullopt;
    return unknown;
  }
  GF_CHECK(bring_up_to_date(*found));
  return found;
}

/// An id that was given out and of which nothing is known. Of those the newest file knew of, it was
/// forgotten.
void Recoverer::miss(JobId id) {
  const bool forgotten = !sources_.empty() && sources_.front().content->is_whole() &&
                         id < sources_.front().content->next_id();
  if (forgotten || recovery_.complete || id >= known_.next_id) return;
  if (!recovery_.missing.empty() && recovery_.missing.back().second.value + 1 == id.value) {
    recovery_.missing.back().second = id;
  } else {
    recovery_.missing.emplace_back(id, id);
  }
}

/// What the task of an array has of its own, and the rest, which others of it may share.
TaskPayload parted(Payload payload) {
  const auto is_number = [](const std::string& variable) {
    return variable.starts_with("GFLOW_ARRAY_TASK_ID=");
  };
  const auto number = std::ranges::find_if(payload.environment, is_number);
  TaskPayload parts;
  if (number == payload.environment.end()) {
    parts.own = std::move(payload);
    return parts;
  }
  parts.own.environment = {std::move(*number)};
  payload.environment.erase(number);
  parts.shared = std::make_shared<const Payload>(std::move(payload));
  return parts;
}

Result<void> Recoverer::commit(store::Store& store, std::vector<Found>& found) {
  store::Batch batch;
  std::vector<TaskPayload> payloads;
  payloads.reserve(found.size());  // they are borrowed
  std::shared_ptr<const Payload> shared;
  for (Found& one : found) {
    TaskPayload& parts = payloads.emplace_back(parted(std::move(*one.payload)));
    if (parts.shared && shared && *parts.shared == *shared) parts.shared = shared;
    shared = parts.shared;
    batch.saves.push_back(&one.job);
    batch.payloads.push_back({one.job.id, &parts.own, parts.shared.get()});
  }
  if (!batch.empty()) GF_CHECK(store.commit(batch));
  recovery_.jobs += found.size();
  found.clear();
  return {};
}

Result<void> Recoverer::write(store::Store& store) {
  const JobId next = first_free();
  std::vector<Found> batch;
  for (JobId id(1); id < next; id = JobId(id.value + 1)) {
    auto found = GF_TRY(find(id));
    if (!found) {
      miss(id);
      continue;
    }
    hold_without_payload(*found);
    batch.push_back(std::move(*found));
    if (batch.size() == kBatch) GF_CHECK(commit(store, batch));
  }
  GF_CHECK(commit(store, batch));
  known_.next_id = next;
  // Which jobs had ended that are in no source is not known.
  store::Batch rest{.next_id = next, .forgotten = now_.wall};
  if (!sources_.empty()) {
    rest.drains = GF_TRY(sources_.front().content->drains());
    rest.unhealthy = GF_TRY(sources_.front().content->unhealthy());
    rest.slices = GF_TRY(sources_.front().content->slices());
    // What was under way then may have been done since, and undone by somebody else: only a UUID
    // tells a slice.
    std::erase_if(*rest.slices, [](const MadeSlice& slice) { return slice.uuid.empty(); });
    rest.lived = GF_TRY(sources_.front().content->lived());
  }
  return store.commit(rest);
}

Result<Recovery> Recoverer::run() {
  known_ = GF_TRY(store::known_of(paths_.database()));
  GF_CHECK(note_attempts());
  GF_CHECK(os::remove_tree(work_.path()));
  GF_CHECK(os::make_directories(work_.path()));
  GF_CHECK(open_sources());
  if (!known_.is_all) {
    known_.next_id = std::max(known_.next_id, after_logs(paths_.logs_dir, first_free()));
  }
  const std::string fresh = work_.path() + "/fresh.db";
  {
    const auto store = GF_TRY(store::Store::open(fresh));
    GF_CHECK(write(*store));
  }
  recovery_.kept = GF_TRY(store::install(fresh, paths_.database(), known_, now_.wall));
  return std::move(recovery_);
}

/// Whether there is nothing that a database could be rebuilt from, and never was.
Result<bool> is_fresh(const os::Paths& paths) {
  const auto backups = GF_TRY(store::list_backups(paths.database()));
  const auto attempts = GF_TRY(runner::list_attempts(paths.attempts_dir()));
  const bool has_ids = GF_TRY(os::is_there(paths.database() + ".ids"));
  return !has_ids && backups.empty() && attempts.empty();
}

/// Whether nothing failed; the error if it was not damage.
template <typename T>
Result<bool> is_undamaged(const Result<T>& done) {
  if (!done && !is_damage(done.error())) return std::unexpected(done.error());
  return done.has_value();
}

/// Whether the daemon would start with the database as it is. Errors: why it would not, if that is
/// no damage.
Result<bool> is_in_order(const os::Paths& paths) {
  const bool is_there = GF_TRY(os::is_there(paths.database()));
  if (!is_there) return is_fresh(paths);
  const auto store = store::Store::open(paths.database());
  const bool opens = GF_TRY(is_undamaged(store));
  if (!opens) return false;
  const auto loaded = (*store)->load();
  const bool loads = GF_TRY(is_undamaged(loaded));
  if (!loads) return false;
  return is_undamaged(check_running(loaded->jobs, paths));
}

}  // namespace

Result<Recovery> recover(const os::Paths& paths, Now now) {
  os::LockHolder self{os::process_id(), ""};
  if (const auto last = os::read_lock(paths.lock())) self.arguments = last->arguments;
  const os::Fd lock = GF_TRY(take_daemon_lock(paths.lock(), self));
  const bool in_order = GF_TRY(is_in_order(paths));
  if (in_order) return Recovery{.database = paths.database(), .needed = false};
  return Recoverer(paths, now).run();
}

}  // namespace gflow::daemon
