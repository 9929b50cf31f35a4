// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>

#include "os/fd.h"
#include "os/file.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

using namespace samples;

TEST(StoreTest, EveryStateAndFieldComesBackFromDisk) {
  const Directory directory;
  std::vector<Job> jobs = every_state();
  jobs.insert(jobs.end() - 1, full(30, Held{""}));
  {
    auto store = open(directory.file("gflow.db"));
    ASSERT_TRUE(store->commit(batch_of(jobs, payload())));
    EXPECT_EQ(jobs_of(*store), jobs);
  }
  auto store = open(directory.file("gflow.db"));
  const Loaded loaded = store->load().value();
  EXPECT_EQ(loaded.jobs, jobs);
  EXPECT_EQ(loaded.next_id, JobId(1'000'001));
}

TEST(StoreTest, AJobMayGoFromAnyStateToAnyOther) {
  auto store = open(":memory:");
  for (const Job& from : every_state()) {
    for (const Job& to : every_state()) {
      Job before = from;
      Job after = to;
      before.id = after.id = JobId(77);
      ASSERT_TRUE(store->commit(Batch{.saves = {&before}}));
      ASSERT_TRUE(store->commit(Batch{.saves = {&after}}));
      ASSERT_EQ(jobs_of(*store), std::vector{after})
          << status_name(status_of(from)) << " -> " << status_name(status_of(to));
    }
  }
}

TEST(StoreTest, OneThatStartsIsStillOneThatOthersMadeRoomFor) {
  auto store = open(":memory:");
  std::vector<Job> jobs = every_state();
  std::erase_if(jobs, [](const Job& job) { return !std::holds_alternative<Starting>(job.state); });
  ASSERT_FALSE(jobs.empty());
  for (Job& job : jobs) std::get<Starting>(job.state).preemption_at = std::chrono::seconds(90);
  ASSERT_TRUE(store->commit(batch_of(jobs, payload())));
  EXPECT_EQ(jobs_of(*store), jobs);
}

TEST(StoreTest, PlainJobsTakeNoRoomForWhatTheyDoNotAsk) {
  const Directory directory;
  {
    auto store = open(directory.file("gflow.db"));
    const Job job = queued(1);
    ASSERT_TRUE(store->commit(Batch{.saves = {&job}}));
  }
  const SQLite::Database database(directory.file("gflow.db"), SQLite::OPEN_READONLY);
  SQLite::Statement row(
      database,
      "SELECT coalesce(share_parts, gpu_memory_bytes, gpu_mode, vendor, models, see_all, nodes, "
      "selector, preemption, preempt_signal, preemptions, served_ms, cpu_list, node, peers, "
      "placed_because, suspended_mono_ms, stood_ms, peak_gpu_memory_bytes, "
      "not_before_lived_ms, requeue_why, preemption_lived_ms) FROM jobs");
  ASSERT_TRUE(row.executeStep());
  EXPECT_TRUE(row.getColumn(0).isNull());
}

TEST(StoreTest, TokensAreKeptUntilTheyAreReplaced) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto kept = [&] { return open(path)->load().value().tokens; };
  ASSERT_TRUE(open(path)->commit(Batch{.tokens = tokens()}));
  EXPECT_EQ(kept(), tokens());
  const std::vector<Token> fewer = {tokens()[1]};
  ASSERT_TRUE(open(path)->commit(Batch{.tokens = fewer}));
  EXPECT_EQ(kept(), fewer);
  ASSERT_TRUE(open(path)->commit(Batch{.drains = drains()}));
  EXPECT_EQ(kept(), fewer);
  ASSERT_TRUE(open(path)->commit(Batch{.tokens = std::vector<Token>()}));
  EXPECT_EQ(kept(), std::vector<Token>());
}

TEST(StoreTest, WhatIsKnownOfNodesThatFailIsReplacedAsAWhole) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto kept = [&] { return open(path)->load().value().unhealthy; };
  std::vector<NodeHealth> told = unhealthy();
  ASSERT_TRUE(open(path)->commit(Batch{.unhealthy = told}));
  EXPECT_EQ(kept(), told);
  told.erase(told.begin());
  ASSERT_TRUE(open(path)->commit(Batch{.unhealthy = told}));
  EXPECT_EQ(kept(), told);
  ASSERT_TRUE(open(path)->commit(Batch{.unhealthy = std::vector<NodeHealth>()}));
  EXPECT_TRUE(kept().empty());
}

TEST(StoreTest, SlicesAreReplacedAsAWholeAndFollowTheNameOfTheNode) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto kept = [&] { return open(path)->load().value().slices; };
  std::vector<MadeSlice> made = slices();
  ASSERT_TRUE(open(path)->commit(Batch{.slices = made}));
  EXPECT_EQ(kept(), made);
  made.pop_back();
  made.front().node = "";
  ASSERT_TRUE(open(path)->commit(Batch{.slices = made}));
  EXPECT_EQ(kept(), made);
  {
    const auto store = open(path);
    store::Loaded loaded = store->load().value();
    ASSERT_TRUE(store->rename_node(loaded, "lab9"));
    EXPECT_EQ(loaded.slices.front().node, "lab9");
  }
  EXPECT_EQ(kept().front().node, "lab9");
  ASSERT_TRUE(open(path)->commit(Batch{.slices = std::vector<MadeSlice>()}));
  EXPECT_TRUE(kept().empty());
}

TEST(StoreTest, DrainsAreReplacedAsAWhole) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto kept = [&] { return open(path)->load().value().drains; };
  EXPECT_EQ(kept(), std::vector<Drain>());
  ASSERT_TRUE(open(path)->commit(Batch{.drains = drains()}));
  EXPECT_EQ(kept(), drains());
  const Job job = queued(1);
  ASSERT_TRUE(open(path)->commit(Batch{.saves = {&job}}));
  EXPECT_EQ(kept(), drains());
  const std::vector<Drain> fewer = {{"", std::nullopt, "the roof leaks", "bob"}};
  ASSERT_TRUE(open(path)->commit(Batch{.drains = fewer}));
  EXPECT_EQ(kept(), fewer);
  ASSERT_TRUE(open(path)->commit(Batch{.drains = std::vector<Drain>()}));
  EXPECT_EQ(kept(), std::vector<Drain>());
}

TEST(StoreTest, TheTimeThatPassedGoesOnInTheSameBoot) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const MonoTime then(std::chrono::hours(5));
  const Lived lived{std::chrono::hours(100), then, "boot-1"};
  const Job job = queued(1);
  EXPECT_EQ(open(path)->load().value().lived.total, std::chrono::milliseconds(0));
  ASSERT_TRUE(open(path)->commit(Batch{.saves = {&job}, .lived = lived}));
  const Lived kept = open(path)->load().value().lived;
  EXPECT_EQ(kept.now(then + std::chrono::hours(2), "boot-1"), std::chrono::hours(102));
  EXPECT_EQ(kept.now(then + std::chrono::hours(2), "boot-2"), std::chrono::hours(100));
  EXPECT_EQ(kept.now(MonoTime(std::chrono::hours(1)), "boot-1"), std::chrono::hours(100));
}

TEST(StoreTest, UntilWhenJobsWereForgottenIsKept) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const WallTime ended(std::chrono::milliseconds(1'772'366'400'123));
  EXPECT_EQ(open(path)->load().value().forgotten, std::nullopt);
  const Job job = queued(1);
  ASSERT_TRUE(open(path)->commit(Batch{.saves = {&job}, .forgotten = ended}));
  EXPECT_EQ(open(path)->load().value().forgotten, ended);
  ASSERT_TRUE(open(path)->commit(Batch{.forgets = {JobId(1)}}));
  EXPECT_EQ(open(path)->load().value().forgotten, ended);
}

// A node is the same one after its host was renamed; in old stores it had no name.
TEST(StoreTest, TheDaemonsNodeKeepsWhatItHasUnderANewName) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const auto job = [](std::uint64_t id, std::string node, std::string peer) {
    Job running = queued(id);
    Attempt attempt{.number = 1, .allocation = {std::move(node), {}, {}}, .peers = {}};
    attempt.peers.push_back({std::move(peer), {}, {}});
    running.state = Running{std::move(attempt)};
    running.spec.request.nodes = 2;
    return running;
  };
  const std::vector<Job> jobs = {job(1, "", "n2"), job(2, "n2", "")};
  ASSERT_TRUE(open(path)->commit(
      Batch{.saves = {&jobs[0], &jobs[1]}, .drains = {{{"", 3, "fan", "root"}}}}));
  for (const std::string name : {"lab1", "lab2"}) {
    auto store = open(path);
    Loaded loaded = *store->load();
    ASSERT_TRUE(store->rename_node(loaded, name));
    EXPECT_EQ(loaded.jobs, (std::vector{job(1, name, "n2"), job(2, "n2", name)})) << name;
    EXPECT_EQ(loaded.drains, (std::vector<Drain>{{name, 3, "fan", "root"}})) << name;
    const Loaded again = *store->load();
    EXPECT_EQ(again.node, name);
    EXPECT_EQ(again.jobs, loaded.jobs) << name;
    EXPECT_EQ(again.drains, loaded.drains) << name;
  }
}

TEST(StoreTest, DependenciesFollowTheJob) {
  using Ids = std::vector<JobId>;
  auto store = open(":memory:");
  Ids many;
  for (std::uint64_t id = 1; id <= 5000; ++id) many.emplace_back(id);
  for (const Ids& jobs : {Ids{JobId(1)}, Ids{JobId(2), JobId(9)}, Ids{}, many, Ids{JobId(2)}}) {
    Job job = queued(9000);
    job.spec.dependencies.jobs = jobs;
    ASSERT_TRUE(store->commit(Batch{.saves = {&job}}));
    EXPECT_EQ(jobs_of(*store), std::vector{job});
  }
}

TEST(StoreTest, PayloadsComeBackByteForByte) {
  const Payload bare;
  Payload set_but_empty;
  set_but_empty.script = "";
  set_but_empty.config_name = "";
  const Directory directory;
  {
    auto store = open(directory.file("gflow.db"));
    const std::vector<Job> jobs = {queued(1), queued(2), queued(3)};
    Batch batch = batch_of(jobs, bare);
    const Payload filled = payload();
    batch.payloads[1].own = &filled;
    batch.payloads[2].own = &set_but_empty;
    ASSERT_TRUE(store->commit(batch));
  }
  auto store = open(directory.file("gflow.db"));
  EXPECT_EQ(store->payload(JobId(1)).value(), bare);
  EXPECT_EQ(store->payload(JobId(2)).value(), payload());
  EXPECT_EQ(store->payload(JobId(3)).value(), set_but_empty);
  EXPECT_EQ(store->payload(JobId(4)).error().code, Code::NotFound);
}

TEST(StoreTest, ForgettingAJobTakesWhatBelongsToIt) {
  const Directory directory;
  {
    auto store = open(directory.file("gflow.db"));
    const std::vector<Job> jobs = {full(80, Held{""}), full(81, Held{""})};
    ASSERT_TRUE(store->commit(batch_of(jobs, payload())));
    ASSERT_TRUE(store->commit(Batch{.forgets = {JobId(80)}}));
    EXPECT_EQ(jobs_of(*store), std::vector{jobs[1]});
    EXPECT_EQ(store->payload(JobId(80)).error().code, Code::NotFound);
  }
  const SQLite::Database database(directory.file("gflow.db"), SQLite::OPEN_READONLY);
  for (const char* table : {"dependencies", "payloads"}) {
    SQLite::Statement jobs(database, std::string("SELECT DISTINCT job FROM ") + table);
    ASSERT_TRUE(jobs.executeStep()) << table;
    EXPECT_EQ(jobs.getColumn(0).getInt(), 81) << table;
    EXPECT_FALSE(jobs.executeStep()) << table;
  }
}

/// Rows of what several jobs share.
int shared_rows(const std::string& path) {
  SQLite::Database database(path, SQLite::OPEN_READONLY);
  return database.execAndGet("SELECT count(*) FROM shared_payloads").getInt();
}

TEST(StoreTest, WhatJobsShareIsKeptOnceUntilTheLastOfThemEnds) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  const Payload shared = payload();
  std::vector<Job> jobs = {queued(1), queued(2), queued(3), queued(4)};
  std::vector<Payload> own(3);
  own[1].argv = {"other"};
  own[2].environment = {
      shared.environment.front().substr(0, shared.environment.front().find('=')) + "=mine",
      "TASK=3"};
  Batch batch = batch_of(jobs, shared);
  for (std::size_t i = 0; i < 3; ++i) batch.payloads[i] = {jobs[i].id, &own[i], &shared};
  {
    auto store = open(path);
    ASSERT_TRUE(store->commit(batch));
  }
  EXPECT_EQ(shared_rows(path), 1);
  auto store = open(path);
  EXPECT_EQ(store->payload(JobId(1)).value(), shared);
  EXPECT_EQ(store->payload(JobId(4)).value(), shared);
  Payload second = shared;
  second.argv = {"other"};
  EXPECT_EQ(store->payload(JobId(2)).value(), second);
  Payload third = shared;
  third.environment.front() = own[2].environment.front();
  third.environment.emplace_back("TASK=3");
  EXPECT_EQ(store->payload(JobId(3)).value(), third);
  const auto end = [&](std::size_t i) {
    jobs[i].state = Ended{Status::Cancelled, {}, at(1), {}};
    ASSERT_TRUE(store->commit(Batch{.saves = {&jobs[i]}}));
  };
  end(0);
  end(1);
  end(3);
  EXPECT_EQ(store->payload(JobId(3)).value(), third);
  end(2);
  store.reset();
  EXPECT_EQ(shared_rows(path), 0);
}

TEST(StoreTest, WhatIsRunGoesWhenTheJobEnds) {
  const Directory directory;
  auto store = open(directory.file("gflow.db"));
  std::vector<Job> jobs = {queued(1), queued(2), full(3, Ended{Status::Cancelled, {}, at(1), {}})};
  const Payload what = payload();
  ASSERT_TRUE(store->commit(batch_of(jobs, what)));
  EXPECT_EQ(store->payload(JobId(2)).value(), what);
  EXPECT_EQ(store->payload(JobId(3)).error().code, Code::NotFound) << "ended as it was submitted";
  jobs[1].state = Ended{Status::Finished, outcome(), at(2), attempt()};
  ASSERT_TRUE(store->commit(Batch{.saves = {&jobs[0], &jobs[1]}}));
  EXPECT_EQ(store->payload(JobId(1)).value(), what);
  EXPECT_EQ(store->payload(JobId(2)).error().code, Code::NotFound);
  EXPECT_EQ(jobs_of(*store), jobs);
}

TEST(StoreTest, IdsAreNeverGivenTwice) {
  struct Case {
    const char* what;
    Batch batch;
    std::uint64_t next_id;
  };
  const Directory directory;
  const Job ten = queued(10);
  const Case cases[] = {
      {"none yet", {}, 1},
      {"a job", {.saves = {&ten}}, 11},
      {"all forgotten", {.forgets = {JobId(10)}}, 11},
      {"told", {.next_id = JobId(50)}, 50},
      {"never back", {.next_id = JobId(20)}, 50},
      {"many blocks", {.next_id = JobId(123'456)}, 123'456},
  };
  for (const Case& c : cases) {
    ASSERT_TRUE(open(directory.file("gflow.db"))->commit(c.batch)) << c.what;
    EXPECT_EQ(open(directory.file("gflow.db"))->load().value().next_id, JobId(c.next_id)) << c.what;
  }
}

TEST(StoreTest, SubmissionsAreKnownForADay) {
  constexpr int kDay = 86400;
  const auto lived = [](int second) { return Lived{std::chrono::seconds(second), {}, ""}; };
  const Directory directory;
  const std::vector<JobId> jobs = {JobId(5), JobId(6), JobId(7), JobId(3)};
  ASSERT_TRUE(open(directory.file("gflow.db"))
                  ->commit(Batch{.submissions = {{1000, "key", jobs, "a"}}, .lived = lived(0)}));
  auto store = open(directory.file("gflow.db"));
  struct Case {
    std::uint32_t uid;
    const char* key;
    int second;
    bool known;
  };
  const Case cases[] = {{1000, "key", 0, true},
                        {1000, "key", kDay - 1, true},
                        {1000, "key", kDay, false},
                        {1001, "key", 0, false},
                        {1000, "other", 0, false}};
  const auto check = [&] {
    for (const Case& c : cases) {
      const auto found = store->find_submission(c.uid, c.key, lived(c.second).total).value();
      ASSERT_EQ(found.has_value(), c.known) << c.key << " " << c.second;
      if (!c.known) continue;
      EXPECT_EQ(std::pair(found->jobs, found->digest), std::pair(jobs, std::string("a")));
    }
  };
  check();
  // Given again within the day, the first answer stays.
  ASSERT_TRUE(
      store->commit(Batch{.submissions = {{1000, "key", {JobId(99)}, "b"}}, .lived = lived(60)}));
  check();
  // After it, the key is as new.
  ASSERT_TRUE(
      store->commit(Batch{.submissions = {{1000, "key", {JobId(99)}, "b"}}, .lived = lived(kDay)}));
  const auto anew = store->find_submission(1000, "key", lived(kDay).total).value();
  ASSERT_TRUE(anew);
  EXPECT_EQ(std::pair(anew->jobs, anew->digest),
            std::pair(std::vector{JobId(99)}, std::string("b")));
}

TEST(StoreTest, SubmissionsThatAreKnownAreCounted) {
  const auto lived = [](int hours) { return Lived{std::chrono::hours(hours), {}, ""}; };
  const Directory directory;
  const auto path = directory.file("gflow.db");
  const auto add = [&](std::uint32_t uid, const char* key, int hour) {
    const std::vector<JobId> jobs = {JobId(5)};
    ASSERT_TRUE(
        open(path)->commit(Batch{.submissions = {{uid, key, jobs, "a"}}, .lived = lived(hour)}));
  };
  const auto count = [&](std::uint32_t uid, int hour) {
    return open(path)->count_submissions(uid, lived(hour).total).value();
  };
  EXPECT_EQ(count(1000, 0), 0U);
  add(1000, "one", 0);
  add(1000, "two", 2);
  add(1000, "two", 3);
  add(1001, "one", 3);
  EXPECT_EQ(std::pair(count(1000, 3), count(1001, 3)), std::pair(2UZ, 1UZ));
  // The first is past its day; then its row is gone.
  EXPECT_EQ(count(1000, 25), 1U);
  add(1001, "two", 25);
  EXPECT_EQ(std::pair(count(1000, 25), count(1001, 25)), std::pair(1UZ, 2UZ));
}

TEST(StoreTest, AfterAFailureNothingMoreIsTaken) {
  const Directory directory;
  const Job job = queued(1);
  {
    auto store = open(directory.file("gflow.db"));
    const Payload what = payload();
    // A payload of a job that is not there: the whole batch has to go.
    const Batch wrong{.saves = {&job}, .payloads = {{JobId(2), &what}}};
    EXPECT_EQ(store->commit(wrong).error().code, Code::Failure);
    EXPECT_EQ(store->commit(Batch{.saves = {&job}}).error().code, Code::Failure);
  }
  EXPECT_TRUE(jobs_of(*open(directory.file("gflow.db"))).empty());
}

/// Opened and read whole.
Result<Loaded> load(const std::string& path) {
  const auto store = GF_TRY(Store::open(path));
  return store->load();
}

void spoil_pages(const std::string& path, int first) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (int page = first; page < first + 57; ++page) {
    file.seekp(page * 4096);
    file << std::string(2048, '\x5a');
  }
}

/// One of a gflowd that was killed, with pages that are none.
void damage(const std::string& path, int first) {
  {
    auto store = open(path);
    std::vector<Job> jobs;
    for (std::uint64_t id = 1; id <= 2000; ++id) jobs.push_back(queued(id));
    (void)store->commit(batch_of(jobs, payload()));
  }
  spoil_pages(path, first);
  forget_run(path);
}

TEST(StoreTest, WhatIsNotAStoreIsRefusedWithAWayOut) {
  struct Case {
    const char* what;
    void (*make)(const std::string& path);
    const char* says;
    Code code = Code::Failure;
  };
  const Case cases[] = {
      {"text",
       [](const std::string& path) { (void)os::write_file(path, std::string(5000, 'x')); },
       "is not a gflow database: move it away",
       Code::Damaged},
      {"another program's",
       [](const std::string& path) {
         SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
             .exec("CREATE TABLE other (x)");
       },
       "is a database of another program: move it away"},
      {"newer",
       [](const std::string& path) {
         {
           (void)open(path);
         }
         SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 99");
       },
       "): install that version again"},
      {"damaged, last run killed",
       [](const std::string& path) { damage(path, 3); },
       "is damaged (",
       Code::Damaged},
      {"a directory", [](const std::string& path) { (void)os::make_directories(path); }, "open '"},
  };
  for (const Case& c : cases) {
    const Directory directory;
    c.make(directory.file("gflow.db"));
    const auto loaded = load(directory.file("gflow.db"));
    ASSERT_FALSE(loaded) << c.what;
    EXPECT_EQ(loaded.error().code, c.code) << c.what;
    EXPECT_NE(loaded.error().message.find(c.says), std::string::npos)
        << c.what << ": " << loaded.error().message;
  }
}

// Its pages are read through while jobs are read: nothing may be written before that has ended, nor
// may it be taken for one that was closed in order.
TEST(StoreTest, ADamagedOneTakesNothingAndIsLeftAsItIs) {
  struct Case {
    const char* what;
    void (*spoil)(const std::string& path);
  };
  static const auto change = [](const std::string& path, const std::string& sql) {
    SQLite::Database database(path, SQLite::OPEN_READWRITE);
    database.exec("PRAGMA ignore_check_constraints = ON");
    (void)sqlite3_db_config(
        database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, static_cast<int*>(nullptr));
    database.exec(sql);
  };
  const Case cases[] = {
      // Of no table that is read before the jobs.
      {"pages", [](const std::string& path) { spoil_pages(path, 100); }},
      {"what only the check sees",
       [](const std::string& path) { change(path, "UPDATE jobs SET requeue = 9 WHERE id = 2"); }},
      {"what only reading sees",
       [](const std::string& path) { change(path, "UPDATE jobs SET victims = 'x' WHERE id = 2"); }},
      {"what both see",
       [](const std::string& path) {
         change(path, "UPDATE jobs SET id = 4000000000000000000, state = 9 WHERE id = 2000");
       }},
      {"more jobs in one row than were ever made",
       [](const std::string& path) {
         change(path,
                "UPDATE jobs SET id = 4000000000000000000, range_first = 2001, range_naming = -1 "
                "WHERE id = 2001");
       }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    const Directory directory;
    const std::string path = directory.file("killed.db");
    {
      auto store = open(directory.file("gflow.db"));
      std::vector<Job> jobs;
      for (std::uint64_t id = 1; id <= 2000; ++id) jobs.push_back(queued(id));
      ASSERT_TRUE(store->commit(batch_of(jobs, payload())));
      store.reset();
      store = open(directory.file("gflow.db"));
      const Job last = queued(2001);
      ASSERT_TRUE(store->commit(batch_of({last}, payload())));
      for (const char* end : {"", "-wal", ".ids"}) {  // as a kill leaves them
        std::filesystem::copy_file(directory.file("gflow.db") + end, path + end);
      }
    }
    c.spoil(path);
    const auto files = [&path] {
      std::vector<std::string> all;
      for (const char* end : {"", "-wal", ".ids"}) {
        all.push_back(os::read_file(path + end).value_or("gone"));
      }
      return all;
    };
    const auto before = files();
    for (int i = 0; i < 2; ++i) {
      const auto store = Store::open(path);
      ASSERT_TRUE(store) << store.error().message;
      const auto loaded = (*store)->load();
      ASSERT_FALSE(loaded);
      EXPECT_EQ(loaded.error().code, Code::Damaged);
      const Job job = queued(3000);
      EXPECT_FALSE((*store)->commit(Batch{.saves = {&job}}));
    }
    EXPECT_TRUE(files() == before);
  }
}

TEST(StoreTest, WhatTheCheckRefusesIsNotWrittenToBeforeItIsRead) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  damage(path, 100);
  const auto store = Store::open(path);
  ASSERT_TRUE(store) << store.error().message;
  const Job job = queued(3000);
  const auto committed = (*store)->commit(Batch{.saves = {&job}});
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, Code::Damaged);
}

TEST(StoreTest, TwoProcessesCannotHaveOne) {
  const Directory directory;
  const std::string path = directory.file("gflow.db");
  std::array<int, 2> to_child{};
  std::array<int, 2> from_child{};
  ASSERT_EQ(::pipe(to_child.data()), 0);
  ASSERT_EQ(::pipe(from_child.data()), 0);
  const pid_t child = ::fork();
  char byte = 0;
  if (child == 0) {
    ::close(to_child[1]);
    const auto held = Store::open(path);
    if (!held || ::write(from_child[1], "h", 1) != 1) ::_exit(1);
    (void)::read(to_child[0], &byte, 1);  // until the other has tried
    ::_exit(0);
  }
  os::Fd lets_go(to_child[1]);
  ::close(to_child[0]);
  ::close(from_child[1]);
  const os::Fd holds(from_child[0]);
  ASSERT_EQ(::read(holds.get(), &byte, 1), 1);
  const auto second = Store::open(path);
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("is in use by another process: stop the other gflowd"),
            std::string::npos)
      << second.error().message;
  lets_go.reset();
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST(StoreTest, OnlyTheOwnerCanReadWhatJobsWereGiven) {
  const Directory directory;
  auto store = open(directory.file("gflow.db"));
  const Job job = queued(1);
  ASSERT_TRUE(store->commit(Batch{.saves = {&job}}));
  for (const char* name : {"gflow.db", "gflow.db-wal", "gflow.db.ids"}) {
    struct stat facts{};
    ASSERT_EQ(::stat(directory.file(name).c_str(), &facts), 0) << name;
    EXPECT_EQ(facts.st_mode & 0777U, 0600U) << name;
  }
}

}  // namespace
}  // namespace gflow::store
