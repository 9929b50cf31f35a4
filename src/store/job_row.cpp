// SPDX-License-Identifier: Apache-2.0
#include "store/job_row.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "store/number_list.h"
#include "store/payload_row.h"
#include "store/spec_row.h"

namespace gflow::store {
namespace {

// In the order bind_job() and read_job() go through them, after the id and kSpecColumns.
constexpr auto kColumns = std::to_array<std::string_view>({
    "submitted_ms",
    "attempts",
    "retries",
    "preemptions",
    "served_ms",
    "state",
    "status",
    "launch_failures",
    "held_why",
    "attempt",
    "gpu_indices",
    "started_ms",
    "started_mono_ms",
    "boot_id",
    "pid",
    "cpu_list",
    "node",
    "peers",
    "placed_because",
    "suspended_mono_ms",
    "stood_ms",
    "stop_reason",
    "stop_uid",
    "stop_user",
    "stop_signal",
    "end_reason",
    "exit_code",
    "signal",
    "message",
    "run_time_ms",
    "cpu_time_ms",
    "peak_memory_bytes",
    "peak_gpu_memory_bytes",
    "ended_ms",
});
constexpr int kAttemptColumns = 10;
constexpr int kStopColumns = 4;
constexpr int kOutcomeColumns = 9;

std::vector<std::string_view> columns() {
  std::vector<std::string_view> all;
  all.reserve(1 + kSpecColumns.size() + kColumns.size());
  all.emplace_back("id");
  for (const std::string_view column : kSpecColumns) all.push_back(column);
  for (const std::string_view column : kColumns) all.push_back(column);
  return all;
}

// Which alternative of JobState. Persisted: never renumber.
enum class Kind { Queued = 1, Held = 2, Starting = 3, Running = 4, Ended = 5 };

std::string numbers_text(const std::vector<int>& numbers) {
  return write_numbers({numbers.begin(), numbers.end()});
}

std::vector<int> read_list(std::string_view text) {
  const auto numbers = read_numbers(text);
  if (!numbers) throw SQLite::Exception(fmt::format("numbers '{}'", text));
  std::vector<int> list;
  list.reserve(numbers->size());
  for (const std::uint64_t number : *numbers) list.push_back(static_cast<int>(number));
  return list;
}

/// Three strings for each: node, GPUs, CPUs.
std::string pack_peers(const std::vector<Allocation>& peers) {
  std::vector<std::string> strings;
  for (const Allocation& peer : peers) {
    strings.push_back(peer.node);
    strings.push_back(numbers_text(peer.gpus));
    strings.push_back(numbers_text(peer.cpus));
  }
  return pack(strings);
}

std::vector<Allocation> unpack_peers(std::string_view packed) {
  const auto strings = unpack(packed);
  if (!strings || strings->size() % 3 != 0) throw SQLite::Exception("damaged peers");
  std::vector<Allocation> peers;
  for (std::size_t i = 0; i < strings->size(); i += 3) {
    peers.push_back({(*strings)[i], read_list((*strings)[i + 1]), read_list((*strings)[i + 2])});
  }
  return peers;
}

void bind_attempt(Query& query, const Attempt* attempt) {
  if (attempt == nullptr) {
    query.nulls(kAttemptColumns);
    return;
  }
  const Allocation& first = attempt->allocation;
  query.integer(attempt->number).copied(numbers_text(first.gpus)).time(attempt->started);
  query.integer(attempt->started_mono.time_since_epoch().count());
  query.text(attempt->boot_id).integer(attempt->pid);
  first.cpus.empty() ? query.null() : query.copied(numbers_text(first.cpus));
  query.text_unless_empty(first.node);
  attempt->peers.empty() ? query.null() : query.copied_blob(pack_peers(attempt->peers));
  query.text_unless_empty(attempt->placed_because);
}

std::optional<Attempt> read_attempt(Query& query) {
  if (query.is_null()) {
    query.skip(kAttemptColumns);
    return std::nullopt;
  }
  Attempt attempt;
  attempt.number = query.as<int>();
  attempt.allocation.gpus = read_list(query.text());
  attempt.started = query.time();
  attempt.started_mono = MonoTime(std::chrono::milliseconds(query.integer()));
  attempt.boot_id = query.text();
  attempt.pid = query.as<int>();
  if (const auto cpus = query.optional_text()) attempt.allocation.cpus = read_list(*cpus);
  attempt.allocation.node = query.text();
  if (const auto peers = query.optional_text()) attempt.peers = unpack_peers(*peers);
  attempt.placed_because = query.text();
  return attempt;
}

void bind_standing(Query& query, const Running* running) {
  if (running == nullptr) {
    query.nulls(2);
    return;
  }
  const auto& since = running->suspended;
  since ? query.integer(since->time_since_epoch().count()) : query.null();
  query.integer_unless(0, running->stood.count());
}

void bind_stop(Query& query, const Stop* stop) {
  if (stop == nullptr) {
    query.nulls(kStopColumns);
    return;
  }
  query.integer(static_cast<int>(stop->reason)).integer(stop->by.uid).text(stop->by.name);
  query.integer(stop->signal);
}

std::optional<Stop> read_stop(Query& query) {
  if (query.is_null()) {
    query.skip(kStopColumns);
    return std::nullopt;
  }
  Stop stop;
  stop.reason = query.as<EndReason>();
  stop.by.uid = query.as<std::uint32_t>();
  stop.by.name = query.text();
  stop.signal = query.as<int>();
  return stop;
}

void bind_ended(Query& query, const Ended* ended) {
  if (ended == nullptr) {
    query.nulls(kOutcomeColumns);
    return;
  }
  const Outcome& outcome = ended->outcome;
  query.integer(static_cast<int>(outcome.reason)).integer(outcome.exit_code);
  query.integer(outcome.signal).text(outcome.message).integer(outcome.run_time.count());
  query.integer(outcome.cpu_time.count()).integer(outcome.peak_memory.bytes);
  query.integer_unless(0, outcome.peak_gpu_memory.bytes).time(ended->at);
}

Ended read_ended(Query& query) {
  Ended ended;
  ended.outcome.reason = query.as<EndReason>();
  ended.outcome.exit_code = query.as<int>();
  ended.outcome.signal = query.as<int>();
  ended.outcome.message = query.text();
  ended.outcome.run_time = std::chrono::milliseconds(query.integer());
  ended.outcome.cpu_time = std::chrono::milliseconds(query.integer());
  ended.outcome.peak_memory.bytes = query.integer();
  ended.outcome.peak_gpu_memory.bytes = query.integer();
  ended.at = query.time();
  return ended;
}

Kind kind_of(const JobState& state) { return static_cast<Kind>(state.index() + 1); }
static_assert(std::is_same_v<std::variant_alternative_t<0, JobState>, Queued>);
static_assert(std::is_same_v<std::variant_alternative_t<1, JobState>, Held>);
static_assert(std::is_same_v<std::variant_alternative_t<2, JobState>, Starting>);
static_assert(std::is_same_v<std::variant_alternative_t<3, JobState>, Running>);
static_assert(std::is_same_v<std::variant_alternative_t<4, JobState>, Ended>);

int launch_failures_of(const JobState& state) {
  if (const auto* queued = std::get_if<Queued>(&state)) return queued->launch_failures;
  if (const auto* starting = std::get_if<Starting>(&state)) return starting->launch_failures;
  return 0;
}

const Stop* stop_of(const JobState& state) {
  const std::optional<Stop>* stop = nullptr;
  if (const auto* starting = std::get_if<Starting>(&state)) stop = &starting->stop;
  if (const auto* running = std::get_if<Running>(&state)) stop = &running->stop;
  return stop != nullptr && *stop ? &**stop : nullptr;
}

/// The rest of the row from `launch_failures` on.
JobState read_state(Query& query, Kind kind, Status status) {
  const int launch_failures = query.as<int>();
  if (kind == Kind::Queued) return Queued{.launch_failures = launch_failures, .not_before = {}};
  if (kind == Kind::Held) return Held{.why = query.text()};
  query.skip(1);
  std::optional<Attempt> attempt = read_attempt(query);
  std::optional<MonoTime> suspended;
  if (const auto since = query.optional<std::int64_t>()) {
    suspended = MonoTime(std::chrono::milliseconds(*since));
  }
  const std::chrono::milliseconds stood(query.integer());
  std::optional<Stop> stop = read_stop(query);
  if (kind == Kind::Ended) {
    Ended ended = read_ended(query);
    ended.status = status;
    ended.attempt = std::move(attempt);
    return ended;
  }
  if (!attempt) throw SQLite::Exception("active without an attempt");
  if (kind == Kind::Running) return Running{std::move(*attempt), std::move(stop), suspended, stood};
  return Starting{std::move(*attempt), std::move(stop), launch_failures};
}

}  // namespace

std::string save_job_sql() {
  std::vector<std::string> updates;
  for (const std::string_view column : columns()) {
    if (column != "id") updates.push_back(fmt::format("{0} = excluded.{0}", column));
  }
  const std::vector<std::string_view> values(columns().size(), "?");
  return fmt::format("INSERT INTO jobs ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}",
                     fmt::join(columns(), ", "),
                     fmt::join(values, ", "),
                     fmt::join(updates, ", "));
}

std::string load_jobs_sql() {
  return fmt::format("SELECT {} FROM jobs ORDER BY id", fmt::join(columns(), ", "));
}

void bind_job(Query& query, const Job& job) {
  query.integer(static_cast<std::int64_t>(job.id.value));
  bind_spec(query, job.spec);
  query.time(job.submitted).integer(job.attempts).integer(job.retries);
  query.integer_unless(0, job.preemptions).integer_unless(0, job.served.count());
  query.integer(static_cast<int>(kind_of(job.state))).integer(static_cast<int>(status_of(job)));
  query.integer(launch_failures_of(job.state));
  const auto* held = std::get_if<Held>(&job.state);
  held != nullptr ? query.text(held->why) : query.null();
  bind_attempt(query, attempt_of(job));
  bind_standing(query, std::get_if<Running>(&job.state));
  bind_stop(query, stop_of(job.state));
  bind_ended(query, std::get_if<Ended>(&job.state));
}

Job read_job(Query& query) {
  Job job;
  job.id = JobId(query.as<std::uint64_t>());
  job.spec = read_spec(query);
  job.submitted = query.time();
  job.attempts = query.as<int>();
  job.retries = query.as<int>();
  job.preemptions = query.as<int>();
  job.served = std::chrono::milliseconds(query.integer());
  const auto kind = query.as<Kind>();
  const auto status = query.as<Status>();
  job.state = read_state(query, kind, status);
  return job;
}

std::string event_detail(const Job& job) {
  if (const auto* held = std::get_if<Held>(&job.state)) return held->why;
  if (const auto* ended = std::get_if<Ended>(&job.state)) return outcome_text(ended->outcome);
  if (const Stop* stop = stop_of(job.state)) {
    return fmt::format("{} by {}", end_reason_name(stop->reason), stop->by.name);
  }
  if (status_of(job) == Status::Suspended) return "to make room";
  if (const Attempt* attempt = attempt_of(job)) {
    return fmt::format(
        "attempt {} on GPUs {}", attempt->number, numbers_text(attempt->allocation.gpus));
  }
  const int failures = launch_failures_of(job.state);
  return failures > 0 ? fmt::format("{} failed launches", failures) : "";
}

}  // namespace gflow::store
