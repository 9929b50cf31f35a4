// SPDX-License-Identifier: Apache-2.0
// What a daemon does for a submission, for that of an array, for the end of a job with the start of
// the next, for a page of the queue, and for each job when it starts: request to answer, commit
// included, in one thread and without sockets, so that each run executes the same instructions.
// Usage, under callgrind:
//
//   valgrind --tool=callgrind --instr-atstart=no counted_operations QUEUED...
//
// Without arguments it says which compiler made it. QUEUED: numbers of waiting jobs at which each
// is done, and of tasks of the array. Callgrind writes a file for each, named "submit 100".
// "reference" is the yardstick: work of the same kind (texts, maps, JSON, SQL) that is nothing of
// gflow's, as the same compiler made it.
#include <SQLiteCpp/SQLiteCpp.h>
#include <valgrind/callgrind.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/json.h"
#include "core/machine_for_tests.h"
#include "daemon/shell.h"
#include "server/event_journal.h"
#include "server/handlers.h"
#include "store/store.h"

namespace gflow {
namespace {

constexpr const char* kBoot = "boot";
constexpr int kTimes = 10;  ///< each operation is done so often

[[noreturn]] void give_up(const std::string& why) {
  std::fprintf(stderr, "counted_operations: %s\n", why.c_str());
  std::exit(1);  // NOLINT(concurrency-mt-unsafe): there is one thread
}

/// Attempts run until they are ended by hand.
class Attempts : public daemon::Dispatcher {
 public:
  std::vector<std::pair<JobId, int>> running;

  void launch(const LaunchOrder& order) override { running.emplace_back(order.job, order.attempt); }
  executor::Adoption adopt(const Job& /*job*/) override { return executor::NeverRan{}; }
  void stop(const Job& /*job*/) override {}
  void suspend(const Job& /*job*/) override {}
  void resume(const Job& /*job*/) override {}
  void move(const Job& /*job*/) override {}
  void signal(const Job& /*job*/, int /*number*/) override {}
  void change_limit(const Job& /*job*/) override {}
  void cut(const MadeSlice& /*slice*/) override {}
  void forget_attempt(JobId /*job*/, int /*attempt*/) override {}
  void forget_job(JobId /*job*/) override {}
  [[nodiscard]] std::string largest_log() const override { return {}; }
};

std::unique_ptr<store::Store> open_store() {
  auto opened = store::Store::open(":memory:");
  if (!opened) give_up(opened.error().message);
  return std::move(*opened);
}

Job waiting(int number) {
  Job job;
  job.id = JobId(static_cast<std::uint64_t>(number));
  job.spec.name = "train-" + std::to_string(number);
  job.spec.user = {1000, "alice"};
  job.spec.request = {.gpus = 1, .cpus = 4};
  job.spec.command = "python train.py --seed " + std::to_string(number);
  job.spec.work_dir = "/home/alice/vision";
  return job;
}

/// The daemon without its loop, runner and devices: requests come as the server hands them on, and
/// are answered by the tick behind them.
class Daemon : public server::Service {
 public:
  /// With so many waiting jobs, which are on no disk: of what is committed none is looked at.
  explicit Daemon(int queued) {
    for (int i = 1; i <= queued; ++i) state_.restore(waiting(i));
    state_.restored(JobId(static_cast<std::uint64_t>(queued) + 1));
    (void)shell_.take_over();
    Machine machine = machine_with_gpus("lab1", 8, "NVIDIA H100", Memory::gib(80));
    machine.source = "sim:8xH100";
    shell_.post(engine::event::NodesChanged{{machine}});
    go_on();
  }

  [[nodiscard]] const engine::State& state() const override { return state_; }
  [[nodiscard]] Now now() const override { return now_; }
  [[nodiscard]] GpuLimits gpu_limits(const Job& /*job*/) const override { return {}; }
  [[nodiscard]] std::optional<JobId> owner_of(int /*pid*/) const override { return std::nullopt; }
  [[nodiscard]] std::optional<GpuIsolation> gpu_isolation(const Job& /*job*/) const override {
    return std::nullopt;
  }
  [[nodiscard]] PortBlock ports(const Job& /*job*/) const override { return {}; }
  [[nodiscard]] std::string log_path(JobId job) const override {
    return "/logs/" + std::to_string(job.value) + ".log";
  }
  void submit(api::SubmitRequest request,
              const Principal& by,
              Answer answer,
              server::SubmitIf condition) override {
    shell_.submit(std::move(request), by, std::move(answer), std::move(condition));
  }
  void request(engine::Event event, Answer answer, Check check) override {
    shell_.post(std::move(event), std::move(answer), std::move(check));
  }
  std::shared_ptr<void> on_change(std::uint64_t /*revision*/,
                                  std::optional<JobId> /*job*/,
                                  std::chrono::milliseconds /*most*/,
                                  std::function<void()> /*then*/) override {
    return {};
  }
  [[nodiscard]] server::EventJournal& events() override { return events_; }
  [[nodiscard]] const server::Counters& counters() const override { return counters_; }
  [[nodiscard]] api::DaemonView daemon(OthersJobs /*shown*/) const override { return {}; }
  [[nodiscard]] std::vector<api::SettingView> settings() const override { return {}; }
  [[nodiscard]] const server::TokenTable& tokens() const override { return tokens_; }
  Result<void> keep_tokens(std::vector<Token> /*tokens*/) override { return {}; }
  void stop() override {}
  Result<void> reload() override { return {}; }

  /// One tick of the loop, a millisecond after the last.
  void go_on() {
    now_.wall += std::chrono::milliseconds(1);
    now_.mono += std::chrono::milliseconds(1);
    do {
      if (const auto ticked = shell_.tick(now_); !ticked) give_up(ticked.error().message);
      while (shell_.has_launches()) shell_.launch_next();
    } while (!shell_.idle());
  }

  /// A request and its answer.
  void ask(void (*handle)(server::Exchange), const std::string& query, std::string body) {
    server::Reply reply;
    reply.status = 0;
    Principal caller;
    caller.name = "alice";
    caller.uid = 1000;
    server::Request request;
    request.query = query;
    request.body = std::move(body);
    handle({.service = *this,
            .caller = std::move(caller),
            .request = std::move(request),
            .respond = [&reply](server::Reply given) { reply = server::written(std::move(given)); },
            .segment = {}});
    if (!shell_.idle()) go_on();
    if (reply.status < 200 || reply.status > 299) give_up(reply.body);
  }

  /// The job that runs longest ends.
  void end_one() {
    const auto [job, attempt] = attempts_.running.front();
    attempts_.running.erase(attempts_.running.begin());
    const std::size_t left = attempts_.running.size();
    shell_.post(engine::event::AttemptEnded{job, attempt, Outcome{}});
    go_on();
    if (attempts_.running.size() != left + 1) give_up("nothing was started in its place");
  }

 private:
  server::Counters counters_;
  server::TokenTable tokens_;
  server::EventJournal events_;
  engine::State state_{engine::Policy{}, kBoot};
  std::unique_ptr<store::Store> store_ = open_store();
  Attempts attempts_;
  daemon::Shell shell_{state_, *store_, attempts_, nullptr};
  Now now_{WallTime(std::chrono::milliseconds(1'772'366'400'000)), MonoTime(std::chrono::hours(1))};
};

nlohmann::json item_of(int number) {
  nlohmann::json environment = nlohmann::json::array();
  for (int i = 0; i < 20; ++i) {
    environment.push_back("VARIABLE_" + std::to_string(i) + "=value " + std::to_string(i));
  }
  return {{"spec",
           {{"name", "train-" + std::to_string(number)},
            {"command", "python train.py --seed " + std::to_string(number)},
            {"work_dir", "/home/alice/vision"},
            {"time_limit_seconds", 3600},
            {"request", {{"gpus", 1}, {"cpus", 4}}}}},
          {"payload",
           {{"argv", {"python", "train.py", "--seed", std::to_string(number)}},
            {"environment", environment}}}};
}

std::string submission_of(int number) {
  return nlohmann::json{{"items", nlohmann::json::array({item_of(number)})}}.dump();
}

std::string array_of(int number, int tasks) {
  nlohmann::json item = item_of(number);
  item["tasks"] = {{"count", tasks}};
  return nlohmann::json{{"items", nlohmann::json::array({std::move(item)})}}.dump();
}

/// Counts what `operation` takes, in a file of that name.
template <typename Operation>
void count(const std::string& name, int times, Operation operation) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
  for (int i = 0; i < times; ++i) operation(i);
  CALLGRIND_DUMP_STATS_AT(name.c_str());
  CALLGRIND_STOP_INSTRUMENTATION;
}

void count_reference() {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  database.exec("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, value TEXT)");
  count("reference", kTimes, [&](int number) {
    const nlohmann::json item = nlohmann::json::parse(item_of(number).dump());
    std::map<std::string, std::string> texts;
    for (int i = 0; i < 200; ++i) texts[std::to_string(i * 7919 % 1000)] = item["spec"]["name"];
    SQLite::Statement insert(database, "INSERT INTO t (name, value) VALUES (?, ?)");
    for (const auto& [name, text] : texts) {
      insert.bind(1, name);
      insert.bind(2, text);
      insert.exec();
      insert.reset();
    }
  });
}

/// GET /api/v1/jobs, as its route has it.
void list_jobs(server::Exchange exchange) {
  auto query = api::read_query_of<JobQuery>(exchange.request.query);
  if (!query) give_up(query.error().message);
  server::list_jobs(std::move(exchange), *std::move(query));
}

void count_at(int queued) {
  Daemon daemon(queued);
  const std::string at = " " + std::to_string(queued);
  std::vector<std::string> bodies;
  for (int i = 0; i < kTimes; ++i) bodies.push_back(submission_of(queued + i));
  count("submit" + at, kTimes, [&](int i) {
    daemon.ask(server::submit_jobs, "", bodies[static_cast<std::size_t>(i)]);
  });
  count("end to start" + at, kTimes, [&](int) { daemon.end_one(); });
  const std::string query = "state=Queued&limit=50&after=" + std::to_string(queued / 2);
  count("list" + at, 2, [&](int) { daemon.ask(list_jobs, query, ""); });
  const std::string array = array_of(queued, queued);
  count("array" + at, 1, [&](int) { daemon.ask(server::submit_jobs, "", array); });
}

/// As a daemon that starts takes what its store holds.
void count_load() {
  constexpr int kJobs = 200;
  const std::unique_ptr<store::Store> store = open_store();
  std::vector<Job> jobs;
  for (int i = 1; i <= kJobs; ++i) jobs.push_back(waiting(i));
  store::Batch batch;
  for (const Job& job : jobs) batch.saves.push_back(&job);
  if (const auto written = store->commit(batch); !written) give_up(written.error().message);
  count("load", 1, [&](int) {
    engine::State state(engine::Policy{}, kBoot);
    auto loaded = store->load([&state](JobRange&& waiting) { state.restore(std::move(waiting)); });
    if (!loaded) give_up(loaded.error().message);
    for (Job& job : loaded->jobs) state.restore(std::move(job));
    state.restored(loaded->next_id);
  });
}

}  // namespace
}  // namespace gflow

int main(int argc, char** argv) {
  if (argc == 1) {
#ifdef __clang__
    std::printf("clang %d\n", __clang_major__);
#else
    std::printf("g++ %d\n", __GNUC__);
#endif
    return 0;
  }
  gflow::count_reference();
  gflow::count_load();
  for (int i = 1; i < argc; ++i) gflow::count_at(std::atoi(argv[i]));
  return 0;
}
