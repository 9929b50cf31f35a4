// SPDX-License-Identifier: Apache-2.0
#include "store/job_row.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string_view>
#include <utility>

#include "store/number_list.h"

namespace gflow::store {
namespace {

// In the order bind_job() and read_job() go through them.
constexpr auto kColumns = std::to_array<std::string_view>({"id",
                                                           "name",
                                                           "uid",
                                                           "user",
                                                           "project",
                                                           "gpus",
                                                           "cpus",
                                                           "memory_bytes",
                                                           "priority",
                                                           "grace_seconds",
                                                           "dependency_mode",
                                                           "auto_cancel",
                                                           "hold",
                                                           "requeue",
                                                           "max_retries",
                                                           "\"group\"",
                                                           "max_concurrent",
                                                           "command",
                                                           "work_dir",
                                                           "submitted_ms",
                                                           "attempts",
                                                           "retries",
                                                           "time_limit_seconds",
                                                           "begin_ms",
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
                                                           "ended_ms"});
constexpr int kAttemptColumns = 6;
constexpr int kStopColumns = 4;
constexpr int kOutcomeColumns = 8;

// Which alternative of JobState. Persisted: never renumber.
enum class Kind { Queued = 1, Held = 2, Starting = 3, Running = 4, Ended = 5 };

void bind_spec(Query& query, const JobSpec& spec) {
  query.text(spec.name).integer(spec.user.uid).text(spec.user.name).text(spec.project);
  query.integer(spec.request.gpus).integer(spec.request.cpus).integer(spec.request.memory.bytes);
  query.integer(spec.priority).integer(spec.grace.count());
  query.integer(static_cast<int>(spec.dependencies.mode)).integer(spec.dependencies.auto_cancel);
  query.integer(spec.hold).integer(spec.requeue).integer(spec.max_retries);
  query.text(spec.group).integer(spec.max_concurrent).text(spec.command).text(spec.work_dir);
}

JobSpec read_spec(Query& query) {
  JobSpec spec;
  spec.name = query.text();
  spec.user.uid = query.as<std::uint32_t>();
  spec.user.name = query.text();
  spec.project = query.text();
  spec.request.gpus = query.as<int>();
  spec.request.cpus = query.as<int>();
  spec.request.memory.bytes = query.integer();
  spec.priority = query.as<int>();
  spec.grace = std::chrono::seconds(query.integer());
  spec.dependencies.mode = query.as<DependencyMode>();
  spec.dependencies.auto_cancel = query.integer() != 0;
  spec.hold = query.integer() != 0;
  spec.requeue = query.integer() != 0;
  spec.max_retries = query.as<int>();
  spec.group = query.text();
  spec.max_concurrent = query.as<int>();
  spec.command = query.text();
  spec.work_dir = query.text();
  return spec;
}

std::string indices_text(const Allocation& allocation) {
  return write_numbers({allocation.gpus.begin(), allocation.gpus.end()});
}

std::vector<int> read_indices(std::string_view text) {
  const auto numbers = read_numbers(text);
  if (!numbers) throw SQLite::Exception(fmt::format("gpu_indices '{}'", text));
  std::vector<int> indices;
  indices.reserve(numbers->size());
  for (const std::uint64_t number : *numbers) indices.push_back(static_cast<int>(number));
  return indices;
}

void bind_attempt(Query& query, const Attempt* attempt) {
  if (attempt == nullptr) {
    query.nulls(kAttemptColumns);
    return;
  }
  query.integer(attempt->number).copied(indices_text(attempt->allocation)).time(attempt->started);
  query.integer(attempt->started_mono.time_since_epoch().count());
  query.text(attempt->boot_id).integer(attempt->pid);
}

std::optional<Attempt> read_attempt(Query& query) {
  if (query.is_null()) {
    query.skip(kAttemptColumns);
    return std::nullopt;
  }
  Attempt attempt;
  attempt.number = query.as<int>();
  attempt.allocation.gpus = read_indices(query.text());
  attempt.started = query.time();
  attempt.started_mono = MonoTime(std::chrono::milliseconds(query.integer()));
  attempt.boot_id = query.text();
  attempt.pid = query.as<int>();
  return attempt;
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
  query.integer(outcome.cpu_time.count()).integer(outcome.peak_memory.bytes).time(ended->at);
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
  std::optional<Stop> stop = read_stop(query);
  if (kind == Kind::Ended) {
    Ended ended = read_ended(query);
    ended.status = status;
    ended.attempt = std::move(attempt);
    return ended;
  }
  if (!attempt) throw SQLite::Exception("active without an attempt");
  if (kind == Kind::Running) return Running{std::move(*attempt), std::move(stop)};
  return Starting{std::move(*attempt), std::move(stop), launch_failures};
}

}  // namespace

std::string save_job_sql() {
  std::vector<std::string> updates;
  for (const std::string_view column : kColumns) {
    if (column != "id") updates.push_back(fmt::format("{0} = excluded.{0}", column));
  }
  const std::vector<std::string_view> values(kColumns.size(), "?");
  return fmt::format("INSERT INTO jobs ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}",
                     fmt::join(kColumns, ", "),
                     fmt::join(values, ", "),
                     fmt::join(updates, ", "));
}

std::string load_jobs_sql() {
  return fmt::format("SELECT {} FROM jobs ORDER BY id", fmt::join(kColumns, ", "));
}

void bind_job(Query& query, const Job& job) {
  query.integer(static_cast<std::int64_t>(job.id.value));
  bind_spec(query, job.spec);
  query.time(job.submitted).integer(job.attempts).integer(job.retries);
  job.spec.time_limit ? query.integer(job.spec.time_limit->count()) : query.null();
  job.spec.begin ? query.time(*job.spec.begin) : query.null();
  query.integer(static_cast<int>(kind_of(job.state))).integer(static_cast<int>(status_of(job)));
  query.integer(launch_failures_of(job.state));
  const auto* held = std::get_if<Held>(&job.state);
  held != nullptr ? query.text(held->why) : query.null();
  bind_attempt(query, attempt_of(job));
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
  if (query.is_null()) {
    query.skip(1);
  } else {
    job.spec.time_limit = std::chrono::seconds(query.integer());
  }
  if (query.is_null()) {
    query.skip(1);
  } else {
    job.spec.begin = query.time();
  }
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
  if (const Attempt* attempt = attempt_of(job)) {
    return fmt::format("attempt {} on GPUs {}", attempt->number, indices_text(attempt->allocation));
  }
  const int failures = launch_failures_of(job.state);
  return failures > 0 ? fmt::format("{} failed launches", failures) : "";
}

}  // namespace gflow::store
