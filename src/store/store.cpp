// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"
#include "store/array_rows.h"
#include "store/columns.h"
#include "store/connection.h"
#include "store/digest.h"
#include "store/drain_rows.h"
#include "store/event_rows.h"
#include "store/health_rows.h"
#include "store/job_row.h"
#include "store/job_rows.h"
#include "store/lived_row.h"
#include "store/payload_row.h"
#include "store/schema.h"
#include "store/slice_rows.h"
#include "store/token_rows.h"

namespace gflow::store {
namespace {

constexpr std::chrono::milliseconds kOldest =
    std::chrono::hours(24);  ///< submission known by its key

using UserCounts = std::map<std::uint32_t, std::size_t>;

std::int64_t sql_id(JobId id) { return static_cast<std::int64_t>(id.value); }

}  // namespace

/// The connection with its prepared statements. Throws SQLite::Exception throughout.
struct Store::Core {
  Core(std::string file, Connection connection)
      : path(std::move(file)),
        sidecar(std::move(connection.sidecar)),
        content_check(std::move(connection.content_check)),
        database(std::move(connection.database)) {
    const auto kept = database.execAndGet(
        "SELECT max((SELECT next_id FROM meta), (SELECT coalesce(max(id), 0) + 1 FROM jobs))");
    next_id = JobId(static_cast<std::uint64_t>(kept.getInt64()));
    if (sidecar) next_id = std::max(next_id, sidecar->next_id());
    commits =
        static_cast<std::uint64_t>(database.execAndGet("SELECT commits FROM meta").getInt64());
  }

  void save(const Job& job);
  void save(const JobRange& range);
  void take_from_range(JobId job);
  void save_dependencies(const Job& job);
  void save_payloads(const Batch& batch);
  void remove(const Batch& batch);  ///< what ended jobs ran, and jobs that are forgotten
  void count_all_submissions();
  void forget_expired(std::chrono::milliseconds lived, UserCounts& counts);
  void remember(const Submission& submission, std::chrono::milliseconds lived, UserCounts& counts);
  void write(const Batch& batch, JobId first_free);
  [[nodiscard]] Loaded load(const TakeWaiting& take);
  [[nodiscard]] Result<void> take_possession();
  [[nodiscard]] std::vector<JobId> dependencies_of(JobId job);

  std::string path;
  std::optional<Sidecar> sidecar;
  JobId next_id;
  std::uint64_t commits = 0;  ///< batches the database holds
  bool broken = false;
  std::shared_future<Result<void>> content_check;  ///< as of Connection
  bool possessed = false;                          ///< it may be written to
  UserCounts submissions_of;                       ///< rows of submissions

  SQLite::Database database;
  Statement save_job{database, save_job_sql()};
  Statement find_row{database, find_row_sql()};
  Statement find_range{database,
                       "SELECT id, range_first FROM jobs WHERE range_first IS NOT NULL AND id >= ? "
                       "ORDER BY id LIMIT 1"};
  Statement shorten_range{database,
                          "UPDATE jobs SET range_first = ?1, "
                          "range_naming = CASE WHEN ?1 IS NULL THEN NULL ELSE range_naming END "
                          "WHERE id = ?2"};
  Statement list_dependencies{database,
                              "SELECT on_job FROM dependencies WHERE job = ? ORDER BY on_job"};
  Statement clear_dependencies{database, "DELETE FROM dependencies WHERE job = ?"};
  Statement add_dependency{database, "INSERT INTO dependencies (job, on_job) VALUES (?, ?)"};
  Statement add_payload{database, kSavePayloadSql};
  Statement add_shared{database, kSaveSharedSql};
  Statement add_sharer{database, "INSERT INTO payload_sharers (job, shared) VALUES (?, ?)"};
  Statement find_shared{database, "SELECT shared FROM payload_sharers WHERE job = ?"};
  Statement drop_shared{database,
                        "DELETE FROM shared_payloads WHERE id = ?1 AND NOT EXISTS "
                        "(SELECT 1 FROM payload_sharers WHERE shared = ?1) AND NOT EXISTS "
                        "(SELECT 1 FROM arrays WHERE shared = ?1)"};
  Statement drop_payload{database, "DELETE FROM payloads WHERE job = ?"};
  Statement load_payload{database, kLoadPayloadSql};
  Statement forget{database, "DELETE FROM jobs WHERE id = ?"};
  Statement expire{database, "DELETE FROM submissions WHERE at_lived_ms <= ? RETURNING uid"};
  Statement count_expired{database,
                          "SELECT count(*) FROM submissions WHERE at_lived_ms <= ? AND uid = ?"};
  Statement add_submission{database,
                           "INSERT INTO submissions (uid, key, jobs, at_lived_ms, digest) "
                           "VALUES (?, ?, ?, ?, ?) ON CONFLICT (uid, key) DO NOTHING"};
  Statement load_submission{database,
                            "SELECT jobs, digest FROM submissions "
                            "WHERE uid = ? AND key = ? AND at_lived_ms > ?"};
  Statement set_meta_lived{database,
                           "UPDATE meta SET lived_ms = ?, lived_mono_ms = ?, lived_boot_id = ?"};
  Statement set_meta{database, "UPDATE meta SET next_id = ?, commits = ?"};
  Statement set_forgotten{database, "UPDATE meta SET forgotten_ms = ?"};
  Statement set_node{database, "UPDATE meta SET node = ?"};
  EventRows events{database};
  ArrayRows arrays{database};
};

void Store::Core::save(const Job& job) {
  if (job.id < next_id) take_from_range(job.id);
  {
    Query query(save_job);
    bind_job(query, job);
    query.run();
  }
  // Most saves change only the state: not worth writing a long list again.
  if (dependencies_of(job.id) != job.spec.dependencies.jobs) save_dependencies(job);
}

void Store::Core::save(const JobRange& range) {
  const Job last = range.at(range.count - 1);
  {
    Query query(save_job);
    bind_range(query, range, last);
    query.run();
  }
  if (!last.spec.dependencies.jobs.empty()) save_dependencies(last);
}

/// What happens to one of jobs alike concerns no other: from now on it has a row of its own.
void Store::Core::take_from_range(JobId job) {
  JobId first;
  JobId last;
  {
    Query query(find_range);
    if (!query.integer(sql_id(job)).step()) return;
    last = JobId(query.as<std::uint64_t>());
    first = JobId(query.as<std::uint64_t>());
  }
  if (job < first) return;
  if (first < job) {  // those before it get another row, as this one is the last's
    Query query(find_row);
    if (!query.integer(sql_id(last)).step()) throw SQLite::Exception("a range that is gone");
    JobRange range = read_range(query);
    range.first.spec.dependencies.jobs = dependencies_of(last);
    save(range.part(0, job.value - first.value));
  }
  if (job == last) return;  // it is written over
  const JobId next(job.value + 1);
  Query query(shorten_range);
  if (next == last) {
    query.null();
  } else {
    query.integer(sql_id(next));
  }
  query.integer(sql_id(last)).run();
}

std::vector<JobId> Store::Core::dependencies_of(JobId job) {
  std::vector<JobId> jobs;
  Query query(list_dependencies);
  query.integer(sql_id(job));
  while (query.step()) jobs.emplace_back(query.as<std::uint64_t>());
  return jobs;
}

void Store::Core::save_dependencies(const Job& job) {
  Query(clear_dependencies).integer(sql_id(job.id)).run();
  for (const JobId on_job : job.spec.dependencies.jobs) {
    Query(add_dependency).integer(sql_id(job.id)).integer(sql_id(on_job)).run();
  }
}

void Store::Core::count_all_submissions() {
  Statement count{database, "SELECT uid, count(*) FROM submissions GROUP BY uid"};
  Query query(count);
  while (query.step()) {
    const auto uid = query.as<std::uint32_t>();
    submissions_of[uid] = query.as<std::size_t>();
  }
}

void Store::Core::forget_expired(std::chrono::milliseconds lived, UserCounts& counts) {
  Query query(expire);
  query.integer((lived - kOldest).count());
  while (query.step()) {
    const auto of = counts.find(query.as<std::uint32_t>());
    if (--of->second == 0) counts.erase(of);
  }
}

void Store::Core::remember(const Submission& submission,
                           std::chrono::milliseconds lived,
                           UserCounts& counts) {
  const std::string jobs = jobs_text(submission.jobs);
  Query query(add_submission);
  query.integer(submission.uid).text(submission.key).text(jobs).integer(lived.count());
  query.text(submission.digest).run();
  if (database.getChanges() > 0) ++counts[submission.uid];
}

void Store::Core::save_payloads(const Batch& batch) {
  std::map<const Payload*, std::int64_t> rows;
  const auto row_of = [&](const Payload* shared) {
    const auto [at, is_new] = rows.try_emplace(shared);
    if (is_new) {
      Query query(add_shared);
      save_shared(query, *shared);
      at->second = database.getLastInsertRowid();
    }
    return at->second;
  };
  for (const SavedPayload& payload : batch.payloads) {
    {
      Query query(add_payload);
      save_payload(query, payload.job, *payload.own);
    }
    if (payload.shared == nullptr) continue;
    Query(add_sharer).integer(sql_id(payload.job)).integer(row_of(payload.shared)).run();
  }
  for (const SavedArray& array : batch.arrays) {
    arrays.add(array.first, array.tasks, row_of(array.shared));
  }
}

/// What was forgotten may be one of jobs alike that nothing was written of before: the disk was
/// full when it ended.
void Store::Core::remove(const Batch& batch) {
  std::vector<JobId> over;
  for (const Job* job : batch.saves) {
    if (is_ended(*job)) over.push_back(job->id);
  }
  over.insert(over.end(), batch.forgets.begin(), batch.forgets.end());
  std::vector<JobId> without_payload;  // or tasks of arrays
  std::vector<std::int64_t> left;
  for (const JobId job : over) {
    {
      Query query(find_shared);
      if (query.integer(sql_id(job)).step()) left.push_back(query.integer());
    }
    Query(drop_payload).integer(sql_id(job)).run();
    if (database.getChanges() == 0) without_payload.push_back(job);
  }
  for (const JobId job : batch.forgets) {
    if (job < next_id) take_from_range(job);
    Query(forget).integer(sql_id(job)).run();
  }
  for (const std::int64_t shared : arrays.remove_ended(without_payload)) left.push_back(shared);
  for (const std::int64_t shared : left) Query(drop_shared).integer(shared).run();
}

void Store::Core::write(const Batch& batch, JobId first_free) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  for (const Job* job : batch.saves) save(*job);
  for (const JobRange& range : batch.ranges) save(range);
  save_payloads(batch);
  remove(batch);
  UserCounts counts = submissions_of;
  if (!batch.submissions.empty()) {
    const std::chrono::milliseconds lived = batch.lived.value_or(Lived{}).total;
    forget_expired(lived, counts);
    for (const Submission& submission : batch.submissions) remember(submission, lived, counts);
  }
  if (batch.drains) write_drain_rows(database, *batch.drains);
  if (batch.unhealthy) write_health_rows(database, *batch.unhealthy);
  if (batch.slices) write_slice_rows(database, *batch.slices);
  if (batch.tokens) write_token_rows(database, *batch.tokens);
  events.withdrawn();
  if (batch.events != nullptr) events.add(*batch.events);
  if (batch.node) Query(set_node).text(*batch.node).run();
  const auto count = static_cast<std::int64_t>(commits + 1);
  Query(set_meta).integer(sql_id(first_free)).integer(count).run();
  if (batch.lived) {
    Query query(set_meta_lived);
    query.integer(batch.lived->total.count());
    query.integer(batch.lived->at.time_since_epoch().count()).text(batch.lived->boot_id).run();
  }
  if (batch.forgotten) {
    Query(set_forgotten).integer(batch.forgotten->time_since_epoch().count()).run();
  }
  transaction.commit();
  events.added();
  submissions_of = std::move(counts);
  next_id = first_free;
  ++commits;
}

namespace {

void throw_twice(JobId id) {
  throw SQLite::Exception(fmt::format("job {} is there twice", id.value), SQLITE_CORRUPT);
}

}  // namespace

Loaded Store::Core::load(const TakeWaiting& take) {
  Loaded loaded{.jobs = {}, .next_id = next_id};
  JobRows others(database, load_others_sql());
  while (others.step()) {
    JobRange range = others.read();
    if (range.count != 1) {
      throw SQLite::Exception(fmt::format("jobs up to {} do not wait", range.last().value),
                              SQLITE_CORRUPT);
    }
    loaded.jobs.push_back(std::move(range.first));
  }
  const std::int64_t never_given_out = database.execAndGet("SELECT next_id FROM meta").getInt64();
  JobRows waiting(database, load_waiting_sql());
  JobId before;
  auto other = loaded.jobs.begin();
  while (waiting.step()) {
    JobRange range = waiting.read();
    if (range.count > 1 && sql_id(range.last()) >= never_given_out) {  // it would take for ever
      throw SQLite::Exception(fmt::format("jobs up to {} were never made", range.last().value),
                              SQLITE_CORRUPT);
    }
    while (other != loaded.jobs.end() && other->id < range.first.id) ++other;
    const bool has_other = other != loaded.jobs.end() && other->id <= range.last();
    if (range.first.id <= before) throw_twice(before);
    if (has_other) throw_twice(other->id);
    before = range.last();
    take(std::move(range));
  }
  loaded.drains = read_drain_rows(database);
  loaded.unhealthy = read_health_rows(database);
  loaded.slices = read_slice_rows(database);
  loaded.tokens = read_token_rows(database);
  loaded.lived = read_lived(database);
  const auto forgotten = database.execAndGet("SELECT forgotten_ms FROM meta");
  if (!forgotten.isNull()) {
    loaded.forgotten = WallTime(std::chrono::milliseconds(forgotten.getInt64()));
  }
  loaded.node = database.execAndGet("SELECT coalesce(node, '') FROM meta").getString();
  return loaded;
}

/// Only what was found to be in order is written to. Waits for that; an error is said again.
Result<void> Store::Core::take_possession() {
  if (possessed) return {};
  if (content_check.valid()) GF_CHECK(content_check.get());
  if (sidecar) GF_CHECK(sidecar->begin(next_id, commits));
  checkpoint_on_close(database, Checkpoint::Yes);
  possessed = true;
  return {};
}

namespace {

Attempt* attempt_in(JobState& state) {
  if (auto* starting = std::get_if<Starting>(&state)) return &starting->attempt;
  if (auto* running = std::get_if<Running>(&state)) return &running->attempt;
  auto* ended = std::get_if<Ended>(&state);
  return ended != nullptr && ended->attempt ? &*ended->attempt : nullptr;
}

}  // namespace

Store::Store(std::unique_ptr<Core> core) : core_(std::move(core)) {}

Store::~Store() {
  const bool in_order = !core_->broken && core_->take_possession();
  const std::string path = core_->path;
  std::optional<Sidecar> sidecar = std::move(core_->sidecar);
  core_.reset();
  if (!in_order || !sidecar) return;
  // Failing is not a loss: the next open then checks the whole database.
  if (const auto digest = digest_of_file(path)) (void)sidecar->end(*digest);
}

Result<std::unique_ptr<Store>> Store::open(const std::string& path) {
  try {
    auto core = std::make_unique<Core>(path, GF_TRY(connect(path)));
    core->count_all_submissions();
    if (!core->content_check.valid()) GF_CHECK(core->take_possession());
    return std::unique_ptr<Store>(new Store(std::move(core)));  // the constructor is private
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, path);
  }
}

Result<void> Store::check_header(const std::string& path) {
  return store::check_header(path, migrations());
}

Result<Loaded> Store::load(const TakeWaiting& take) {
  try {
    Loaded loaded = core_->load(take);
    GF_CHECK(core_->take_possession());
    return loaded;
  } catch (const SQLite::Exception& exception) {
    core_->broken = true;
    return open_error(exception, core_->path);
  }
}

Result<Loaded> Store::load() {
  std::vector<Job> waiting;
  std::vector<JobRange> ranges;
  Loaded loaded = GF_TRY(load([&](JobRange&& range) {
    if (range.count == 1) {
      waiting.push_back(std::move(range.first));
    } else {
      ranges.push_back(std::move(range));
    }
  }));
  std::ranges::move(waiting, std::back_inserter(loaded.jobs));
  std::ranges::sort(loaded.jobs, {}, &Job::id);
  loaded.ranges = std::move(ranges);
  return loaded;
}

Result<void> Store::rename_node(Loaded& loaded, const std::string& name) {
  if (loaded.node == name) return {};  // a start on a full disk has to do without writing
  Batch batch{.node = name};
  const auto rename = [&](std::string& node) {
    const bool ours = node.empty() || node == loaded.node;
    if (ours) node = name;
    return ours;
  };
  for (Job& job : loaded.jobs) {
    Attempt* attempt = attempt_in(job.state);
    if (attempt == nullptr) continue;
    bool renamed = rename(attempt->allocation.node);
    for (Allocation& peer : attempt->peers) renamed |= rename(peer.node);
    if (renamed) batch.saves.push_back(&job);
  }
  for (Drain& drain : loaded.drains) rename(drain.node);
  if (!loaded.drains.empty()) batch.drains = loaded.drains;
  for (NodeHealth& health : loaded.unhealthy) rename(health.node);
  if (!loaded.unhealthy.empty()) batch.unhealthy = loaded.unhealthy;
  for (MadeSlice& slice : loaded.slices) rename(slice.node);
  if (!loaded.slices.empty()) batch.slices = loaded.slices;
  loaded.node = name;
  return commit(batch);
}

Result<void> Store::commit(const Batch& batch) {
  if (core_->broken) {
    return fail(Code::Failure, "the store has failed before: it takes nothing more until reopened");
  }
  GF_CHECK(core_->take_possession());
  JobId first_free = std::max(core_->next_id, batch.next_id.value_or(JobId()));
  for (const Job* job : batch.saves) first_free = std::max(first_free, JobId(job->id.value + 1));
  for (const JobRange& range : batch.ranges) {
    first_free = std::max(first_free, JobId(range.last().value + 1));
  }
  if (core_->sidecar && first_free > core_->next_id) {
    auto reserved = core_->sidecar->give_out(first_free);
    if (!reserved && reserved.error().code != Code::Exhausted) core_->broken = true;
    if (!reserved) return std::unexpected(std::move(reserved).error());
  }
  try {
    core_->write(batch, first_free);
    // Not to be noted costs nothing but that the loss of this batch would not be noticed.
    if (core_->sidecar) (void)core_->sidecar->committed(core_->commits);
    return {};
  } catch (const SQLite::Exception& exception) {
    const bool rolled_back = sqlite3_get_autocommit(core_->database.getHandle()) != 0;
    if (exception.getErrorCode() == SQLITE_FULL && rolled_back) {
      return fail(Code::Exhausted,
                  fmt::format("no space left on the disk for '{}'", printable(core_->path)));
    }
    core_->broken = true;
    return fail(
        Code::Failure,
        fmt::format("writing '{}': {}", printable(core_->path), printable(exception.what())));
  }
}

Memory Store::unused() {
  try {
    const auto of = [this](const char* pragma) {
      return core_->database.execAndGet(pragma).getInt64();
    };
    return Memory{of("PRAGMA freelist_count") * of("PRAGMA page_size")};
  } catch (const SQLite::Exception&) {
    return {};  // what cannot be asked for cannot be given back, either
  }
}

void Store::shrink() {
  if (core_->broken) return;
  // First the vacuum: a checkpoint then leaves out what lies behind the new end, for which the disk
  // may have no room. Once more, as it is the checkpoint that makes room in the log for the vacuum.
  // Failing changes nothing; steps are small, as each is written to the log, and bounded.
  for (int i = 0; i < 128; ++i) {
    if (core_->database.tryExec("PRAGMA incremental_vacuum(128)") == SQLITE_OK && i % 16 != 15) {
      continue;
    }
    (void)core_->database.tryExec("PRAGMA wal_checkpoint(TRUNCATE)");
  }
}

Result<std::vector<JobEvents>> Store::events() {
  try {
    return core_->events.load();
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, core_->path);
  }
}

std::uint64_t Store::next_event(WallTime now) { return core_->events.next(now); }

std::uint64_t Store::commits() const { return core_->commits; }

Result<std::unique_ptr<Backup>> Store::back_up() {
  return Backup::begin(core_->database, backup_part(core_->path));
}

Result<Payload> Store::payload(JobId job) {
  try {
    Query query(core_->load_payload);
    if (query.integer(sql_id(job)).step()) return read_payload(query);
    if (auto payload = core_->arrays.payload(job)) return std::move(*payload);
    return fail(Code::NotFound, fmt::format("no payload of job {}", job.value));
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, core_->path);
  }
}

Result<std::optional<Submission>> Store::find_submission(std::uint32_t uid,
                                                         const std::string& key,
                                                         std::chrono::milliseconds lived) {
  try {
    Query query(core_->load_submission);
    query.integer(uid).text(key).integer((lived - kOldest).count());
    if (!query.step()) return std::nullopt;
    std::vector<JobId> jobs = read_jobs_text(query.text());
    return Submission{uid, key, std::move(jobs), query.text()};
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, core_->path);
  }
}

Result<std::size_t> Store::count_submissions(std::uint32_t uid, std::chrono::milliseconds lived) {
  const auto all = core_->submissions_of.find(uid);
  if (all == core_->submissions_of.end()) return 0;
  try {
    // Rows go with the next one that is written, of whomever.
    Query query(core_->count_expired);
    query.integer((lived - kOldest).count()).integer(uid);
    if (!query.step()) return all->second;
    return all->second - query.as<std::size_t>();
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, core_->path);
  }
}

Result<std::set<JobId>> Store::submitted_with_key() {
  try {
    std::set<JobId> all;
    Statement list{core_->database, "SELECT jobs FROM submissions"};
    Query query(list);
    while (query.step()) {
      for (const JobId job : read_jobs_text(query.text())) all.insert(job);
    }
    return all;
  } catch (const SQLite::Exception& exception) {
    return open_error(exception, core_->path);
  }
}

}  // namespace gflow::store
