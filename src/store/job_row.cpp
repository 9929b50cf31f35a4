// SPDX-License-Identifier: Apache-2.0
#include "store/job_row.h"

#include <SQLiteCpp/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "store/columns.h"

namespace gflow::store {
namespace {

/// What holds for a job in any state, beside its description.
struct StateColumns {
  enum class Kind { Queued = 1, Held = 2, Starting = 3, Running = 4, Ended = 5 };
  Kind kind = Kind::Queued;  ///< which alternative of JobState. Persisted: never renumber.
  Status status = Status::Queued;
  int requeues = 0;
  std::optional<std::chrono::milliseconds> preemption_at{};
};

/// For which jobs the row stands beside its own: schema/0016_arrays.sql.
struct RangeColumns {
  std::optional<std::int64_t> first{};
  std::int64_t naming = 0;
};
constexpr std::int64_t kNamedById = -1;

}  // namespace
}  // namespace gflow::store

namespace gflow {

template <>
struct Description<store::RangeColumns> {
  using Row = store::RangeColumns;
  static constexpr std::tuple kFields{
      field<&Row::first>({.name = "range_first"}),
      field<&Row::naming>({.name = "range_naming"}),
  };
};

template <>
struct Description<store::StateColumns> {
  using Row = store::StateColumns;
  static constexpr std::tuple kFields{
      field<&Row::kind>({.name = "state", .stored = Stored::Always}),
      field<&Row::status>({.name = "status", .stored = Stored::Always}),
      field<&Row::requeues>({.name = "launch_failures", .stored = Stored::Always}),
      field<&Row::preemption_at>({.name = "preemption_lived_ms"}),
  };
};

/// Beside the columns of any state, and the jobs that make room for it.
template <>
struct Description<Queued> {
  static constexpr std::tuple kFields{
      field<&Queued::not_before>({.name = "not_before_lived_ms"}),
      field<&Queued::why>({.name = "requeue_why"}),
  };
};

template <>
struct Description<Held> {
  static constexpr std::tuple kFields{
      field<&Held::why>({.name = "held_why", .stored = Stored::Always}),
  };
};

}  // namespace gflow

namespace gflow::store {
namespace {

using Kind = StateColumns::Kind;

Kind kind_of(const JobState& state) { return static_cast<Kind>(state.index() + 1); }
static_assert(std::is_same_v<std::variant_alternative_t<0, JobState>, Queued>);
static_assert(std::is_same_v<std::variant_alternative_t<1, JobState>, Held>);
static_assert(std::is_same_v<std::variant_alternative_t<2, JobState>, Starting>);
static_assert(std::is_same_v<std::variant_alternative_t<3, JobState>, Running>);
static_assert(std::is_same_v<std::variant_alternative_t<4, JobState>, Ended>);

int requeues_of(const JobState& state) {
  if (const auto* queued = std::get_if<Queued>(&state)) return queued->requeues;
  if (const auto* starting = std::get_if<Starting>(&state)) return starting->requeues;
  const auto* running = std::get_if<Running>(&state);
  return running == nullptr ? 0 : running->requeues;
}

std::optional<std::chrono::milliseconds> preemption_of(const JobState& state) {
  if (const auto* queued = std::get_if<Queued>(&state)) return queued->preemption_at;
  const auto* starting = std::get_if<Starting>(&state);
  return starting == nullptr ? std::nullopt : starting->preemption_at;
}

const Stop* stop_of(const JobState& state) {
  const std::optional<Stop>* stop = nullptr;
  if (const auto* starting = std::get_if<Starting>(&state)) stop = &starting->stop;
  if (const auto* running = std::get_if<Running>(&state)) stop = &running->stop;
  return stop != nullptr && *stop ? &**stop : nullptr;
}

const GpuMove* move_of(const JobState& state) {
  const auto* running = std::get_if<Running>(&state);
  return running != nullptr && running->move ? &*running->move : nullptr;
}

void bind_queued(Query& query, const Queued* queued) {
  bind_columns(query, queued);
  if (queued == nullptr || queued->victims.empty()) {
    query.null();
  } else {
    query.copied(jobs_text(queued->victims));
  }
}

/// The rest of the row, behind the columns of the state. Of a job that waits it is not looked at.
JobState read_state(Query& query, const StateColumns& row) {
  Queued queued{.requeues = row.requeues, .preemption_at = row.preemption_at};
  read_columns(query, queued);
  queued.victims = read_jobs_text(query.text());
  if (row.kind == Kind::Queued) return queued;
  std::optional<Held> held = read_optional<Held>(query);
  if (row.kind == Kind::Held) return std::move(held).value_or(Held{});
  std::optional<Attempt> attempt = read_optional<Attempt>(query);
  Running running;
  read_columns(query, running);
  running.move = read_optional<GpuMove>(query);
  std::optional<Stop> stop = read_optional<Stop>(query);
  std::optional<Ended> ended = read_optional<Ended>(query);
  const bool active = row.kind == Kind::Starting || row.kind == Kind::Running;
  if (active && !attempt) throw SQLite::Exception("active without an attempt");
  switch (row.kind) {
    case Kind::Queued:
    case Kind::Held:
      break;  // seen to
    case Kind::Starting:
      return Starting{std::move(*attempt), std::move(stop), row.requeues, row.preemption_at};
    case Kind::Running:
      running.attempt = std::move(*attempt);
      running.stop = std::move(stop);
      running.requeues = row.requeues;
      return running;
    case Kind::Ended:
      if (!ended) throw SQLite::Exception("ended without an outcome");
      ended->status = row.status;
      ended->attempt = std::move(attempt);
      return std::move(*ended);
  }
  throw SQLite::Exception(fmt::format("state {}", static_cast<int>(row.kind)));
}

/// Those that read_range() looks at where a job waits: the first ones of all.
std::vector<std::string> waiting_columns() {
  std::vector<std::string> all = {"\"id\""};
  add_columns<RangeColumns>(all);
  add_columns<Job>(all);
  add_columns<StateColumns>(all);
  add_columns<Queued>(all);
  all.emplace_back("\"victims\"");
  add_columns<Held>(all);
  return all;
}

}  // namespace

std::vector<std::string> job_columns() {
  std::vector<std::string> all = waiting_columns();
  add_columns<Attempt>(all);
  add_columns<Running>(all);
  add_columns<GpuMove>(all);
  add_columns<Stop>(all);
  add_columns<Ended>(all);
  return all;
}

std::string save_job_sql() {
  const std::vector<std::string> all = job_columns();
  std::vector<std::string> updates;
  for (const std::string& column : all) {
    if (column != all.front()) updates.push_back(fmt::format("{0} = excluded.{0}", column));
  }
  const std::vector<std::string_view> values(all.size(), "?");
  return fmt::format("INSERT INTO jobs ({}) VALUES ({}) ON CONFLICT (id) DO UPDATE SET {}",
                     fmt::join(all, ", "),
                     fmt::join(values, ", "),
                     fmt::join(updates, ", "));
}

std::string load_waiting_sql() {
  return fmt::format("SELECT {} FROM jobs WHERE state IN ({}, {}) ORDER BY id",
                     fmt::join(waiting_columns(), ", "),
                     static_cast<int>(Kind::Queued),
                     static_cast<int>(Kind::Held));
}

std::string load_others_sql() {
  return fmt::format("SELECT {} FROM jobs WHERE state IS NOT {} AND state IS NOT {} ORDER BY id",
                     fmt::join(job_columns(), ", "),
                     static_cast<int>(Kind::Queued),
                     static_cast<int>(Kind::Held));
}

std::string find_row_sql() {
  return fmt::format("SELECT {} FROM jobs WHERE id >= ? ORDER BY id LIMIT 1",
                     fmt::join(job_columns(), ", "));
}

namespace {

void bind_row(Query& query, const Job& job, const RangeColumns& range) {
  query.integer(static_cast<std::int64_t>(job.id.value));
  bind_columns(query, range);
  bind_columns(query, job);
  const StateColumns state{.kind = kind_of(job.state),
                           .status = status_of(job),
                           .requeues = requeues_of(job.state),
                           .preemption_at = preemption_of(job.state)};
  bind_columns(query, state);
  bind_queued(query, std::get_if<Queued>(&job.state));
  bind_columns(query, std::get_if<Held>(&job.state));
  bind_columns(query, attempt_of(job));
  bind_columns(query, std::get_if<Running>(&job.state));
  bind_columns(query, move_of(job.state));
  bind_columns(query, stop_of(job.state));
  bind_columns(query, std::get_if<Ended>(&job.state));
}

/// Makes of its last job the first of the range.
void begin_range(JobRange& range, const RangeColumns& columns) {
  Job& job = range.first;
  const JobId first(static_cast<std::uint64_t>(*columns.first));
  if (first >= job.id) throw SQLite::Exception(fmt::format("range_first of job {}", job.id.value));
  range.count = job.id.value - first.value + 1;
  range.naming.by_id = columns.naming == kNamedById;
  if (columns.naming > 0) range.naming.step = static_cast<std::uint32_t>(columns.naming);
  auto name = name_before(job.spec.name, job.id, range.naming, range.count - 1);
  if (!name) throw SQLite::Exception(fmt::format("name of job {}", job.id.value));
  job.id = first;
  job.spec.name = std::move(*name);
}

}  // namespace

void bind_job(Query& query, const Job& job) { bind_row(query, job, {}); }

void bind_range(Query& query, const JobRange& range, const Job& last) {
  if (range.count == 1) return bind_job(query, last);
  RangeColumns columns{.first = static_cast<std::int64_t>(range.first.id.value),
                       .naming = static_cast<std::int64_t>(range.naming.step)};
  if (range.naming.by_id) columns.naming = kNamedById;
  bind_row(query, last, columns);
}

JobRange read_range(Query& query) {
  JobRange range;
  Job& job = range.first;
  job.id = JobId(query.as<std::uint64_t>());
  RangeColumns columns;
  read_columns(query, columns);
  read_columns(query, job);
  StateColumns state;
  read_columns(query, state);
  job.state = read_state(query, state);
  if (columns.first) begin_range(range, columns);
  return range;
}

}  // namespace gflow::store
