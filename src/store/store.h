// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "core/job.h"
#include "core/job_event.h"
#include "core/job_range.h"
#include "core/machine.h"
#include "core/made_slice.h"
#include "core/node_health.h"
#include "core/token.h"
#include "store/backup.h"

namespace gflow::store {

/// The time gflow has seen pass, over all boots, at a moment of one of them.
struct Lived {
  std::chrono::milliseconds total{0};
  MonoTime at{};
  std::string boot_id;

  /// How much it is now, in this boot: what passed while the machine was off is not seen.
  [[nodiscard]] std::chrono::milliseconds now(MonoTime mono, const std::string& boot) const {
    return boot == boot_id && mono > at ? total + (mono - at) : total;
  }
};

/// What a store held when it was opened.
struct Loaded {
  std::vector<Job> jobs;           ///< by ascending id, but for those of `ranges`
  std::vector<JobRange> ranges{};  ///< that wait, two at least each; by ascending id
  JobId next_id;                   ///< smallest id never given out
  std::vector<Drain> drains{};
  std::vector<NodeHealth> unhealthy{};  ///< by node
  std::vector<MadeSlice> slices{};
  std::vector<Token> tokens{};  ///< by owner and name
  Lived lived{};
  std::optional<WallTime> forgotten{};  ///< see Batch
  std::string node{};  ///< what the daemon's node was called; "" in stores that did not name it
};

/// One submission, remembered so that a client that never saw the answer can repeat it.
struct Submission {
  std::uint32_t uid = 0;
  std::string key;
  std::vector<JobId> jobs;
  std::string digest{};  ///< of what was submitted; "" in stores that did not keep it
};

/// What a job runs; borrowed.
struct SavedPayload {
  JobId job;
  const Payload* own = nullptr;
  /// What it is set over, as in TaskPayload; kept once however often it is here. Null: nothing.
  const Payload* shared = nullptr;
};

/// What the tasks of an array run, but for their numbers; borrowed.
struct SavedArray {
  JobId first;  ///< of the first task
  TaskRange tasks;
  const Payload* shared = nullptr;  ///< as of SavedPayload
};

/// Everything one tick of the loop changes. Committed whole or not at all.
struct Batch {
  std::vector<const Job*> saves = {};  ///< borrowed until commit() returns; a job once
  /// New jobs alike that wait and are not in `saves`.
  std::vector<JobRange> ranges = {};
  /// Of new jobs. They go when their job ends.
  std::vector<SavedPayload> payloads = {};
  std::vector<SavedArray> arrays = {};  ///< the same, when all their tasks have ended
  std::vector<JobId> forgets = {};
  std::vector<Submission> submissions = {};  ///< a key known already keeps its first jobs
  std::optional<JobId> next_id = {};
  std::optional<std::vector<Drain>> drains = {};  ///< all there are from now on, in their order
  std::optional<std::vector<NodeHealth>> unhealthy = {};  ///< the same
  std::optional<std::vector<MadeSlice>> slices = {};      ///< the same
  std::optional<std::vector<Token>> tokens = {};          ///< the same
  std::optional<std::string> node = {};                   ///< what the daemon's node is called
  /// Written with the rest; alone it is no reason to. The age of `submissions` is counted on it.
  std::optional<Lived> lived = {};
  /// When the last one ended of the ended jobs that were forgotten. Alone, too, no reason to.
  std::optional<WallTime> forgotten = {};
  /// What happened to the jobs; numbered as next_event() said before. Alone, too, no reason to.
  const JobEvents* events = nullptr;  ///< borrowed

  [[nodiscard]] bool empty() const {
    return saves.empty() && ranges.empty() && forgets.empty() && submissions.empty() && !next_id &&
           !drains && !unhealthy && !slices && !tokens && !node;
  }
};

/// The durable truth: SQLite, WAL, synchronous=FULL, for one process, of which one thread calls.
/// Crash-only: after an error from commit() nothing more may be acknowledged and the process has to
/// end; what a later open() finds is the truth.
class Store {
 public:
  /// Opens or creates; brings an older schema up to date. ":memory:" is the fake for tests.
  /// Errors: Failure (not a store, newer schema, network file system, in use), Damaged, Exhausted
  /// (no room to create or upgrade it), each with a way out. After a kill it is read through
  /// meanwhile: what is damaged may be said by load() or the first commit() only.
  [[nodiscard]] static Result<std::unique_ptr<Store>> open(const std::string& path);
  /// Whether a database that a gflowd has open is none for this program to open after it, as far as
  /// its first bytes tell. Errors: as open().
  [[nodiscard]] static Result<void> check_header(const std::string& path);
  ~Store();
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Of the jobs that wait nothing but this is given them, each as it is read, by ascending id: a
  /// long queue is never in memory whole. What it took is worth nothing if this fails.
  /// Errors: as open().
  using TakeWaiting = std::function<void(JobRange&&)>;
  [[nodiscard]] Result<Loaded> load(const TakeWaiting& take);
  /// The same with all of them at once.
  [[nodiscard]] Result<Loaded> load();
  /// Calls the daemon's own node so, in what jobs hold or held and in drains, here and on disk:
  /// after the host or the setting was renamed it is still the same node. Others keep their names.
  /// Errors: as commit().
  [[nodiscard]] Result<void> rename_node(Loaded& loaded, const std::string& name);
  /// One transaction, on disk when this returns. Code::Exhausted if the disk is full: nothing was
  /// written, the same batch may be tried again; any other error is final.
  [[nodiscard]] Result<void> commit(const Batch& batch);

  /// Gives space nothing is in any more back to the file system, as far as there is some and the
  /// database was made by a version that can.
  void shrink();
  /// About what shrink() gives back.
  [[nodiscard]] Memory unused();

  /// What is kept of what happened, by number.
  [[nodiscard]] Result<std::vector<JobEvents>> events();
  /// The number that the next event gets.
  [[nodiscard]] std::uint64_t next_event(WallTime now);

  /// Batches it holds.
  [[nodiscard]] std::uint64_t commits() const;
  /// Begins a copy at backup_part(); publish_backup() puts it in its place once it is whole.
  [[nodiscard]] Result<std::unique_ptr<Backup>> back_up();

  /// Errors: NotFound, also of a job that has ended.
  [[nodiscard]] Result<Payload> payload(JobId job);
  /// The earlier submission with this key, if less than 24 hours of `lived` passed since.
  [[nodiscard]] Result<std::optional<Submission>> find_submission(std::uint32_t uid,
                                                                  const std::string& key,
                                                                  std::chrono::milliseconds lived);
  /// How many such submissions of a user there are.
  [[nodiscard]] Result<std::size_t> count_submissions(std::uint32_t uid,
                                                      std::chrono::milliseconds lived);
  /// The jobs of submissions that can still be repeated by their keys.
  [[nodiscard]] Result<std::set<JobId>> submitted_with_key();

 private:
  struct Core;
  explicit Store(std::unique_ptr<Core> core);
  std::unique_ptr<Core> core_;
};

/// Space set aside beside the store, given back when the disk is full so that what happens to
/// running jobs can still be written: in steps, as whatever filled the disk takes what it finds.
class Ballast {
 public:
  static constexpr int kSteps = 8;

  /// Allocates `size` at `path`, and no more, if there is room for it; a disk too full for that is
  /// not an error here.
  explicit Ballast(std::string path, Memory size);
  /// True if the file is there in full.
  [[nodiscard]] bool held() const;
  /// What has to be free before it is there in full again.
  [[nodiscard]] Memory missing() const;
  /// Errors: Exhausted, naming the setting, if so much cannot be set aside now and never was. A
  /// disk that is full today is no reason not to start.
  [[nodiscard]] Result<void> check() const;
  /// How many steps there are to give back.
  [[nodiscard]] int steps_left() const;
  /// Gives one step back. REQUIRES: there is one.
  void release_step();
  /// Allocates what is missing if there is room for it and some beside.
  void restore();
  /// Space on the file system free for this user.
  [[nodiscard]] Memory disk_free() const;

 private:
  std::string path_;
  Memory size_;
};

}  // namespace gflow::store
