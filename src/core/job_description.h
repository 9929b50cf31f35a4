// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <tuple>
#include <utility>

#include "base/result.h"
#include "core/description.h"
#include "core/job.h"
#include "core/text_limits.h"

/// What a job consists of, row by row. A new field: see the table of ARCHITECTURE.md.
namespace gflow {

inline constexpr Range kGpuRange = {0, 1024};
inline constexpr Range kCpuRange = {0, 1'000'000};
inline constexpr Range kMemoryRange = {0, std::int64_t{1} << 62};
inline constexpr Range kCountRange = {0, 1'000'000};
inline constexpr Range kTimeLimitRange = {1, std::int64_t{10} * 365 * 86400};
inline constexpr Range kSignalRange = {0, 64};
inline constexpr Range kDeviceRange = {0, 65'535};  ///< index on a node

template <>
struct Description<User> {
  static constexpr std::tuple kFields{
      field<&User::uid>({.name = "uid", .help = "number of the account", .stored = Stored::Always}),
      field<&User::name>({.name = "name",
                          .help = "name of the account",
                          .max_bytes = kMaxLabel,
                          .stored = Stored::Always,
                          .column = "user"}),
  };
};

template <>
struct Description<Label> {
  static constexpr std::tuple kFields{
      field<&Label::key>({.name = "key", .help = "name of the label"}),
      field<&Label::value>({.name = "value", .help = "what it has to be"}),
  };
};

template <>
struct Description<Request> {
  static constexpr std::tuple kFields{
      field<&Request::gpus>({.name = "gpus",
                             .help = "GPUs on each node",
                             .range = kGpuRange,
                             .change = Change::Pending,
                             .stored = Stored::Always}),
      field<&Request::share>({.name = "gpu_share_parts",
                              .help = "share of each GPU (JSON: 10,000ths)",
                              .range = {1, Share::kWholeParts},
                              .change = Change::Pending,
                              .column = "share_parts"}),
      field<&Request::share_limit>(
          {.name = "gpu_share_limit_parts",
           .help = "most of each GPU, where other jobs leave it (JSON: 10,000ths); 0: the share",
           .range = {0, Share::kWholeParts},
           .change = Change::Active,
           .column = "share_limit_parts"}),
      field<&Request::gpu_memory>(
          {.name = "gpu_memory_bytes",
           .help = "memory of each GPU that has to be free; 0: not declared",
           .range = kMemoryRange,
           .change = Change::Pending}),
      field<&Request::mode>({.name = "gpu_mode",
                             .help = "whole devices, a share of them, or time slices",
                             .change = Change::Pending}),
      field<&Request::vendor>({.name = "gpu_vendor",
                               .help = "vendor of the GPUs; empty is any",
                               .max_bytes = kMaxLabel,
                               .change = Change::Pending,
                               .column = "vendor"}),
      field<&Request::models>({.name = "gpu_models",
                               .help = "models of which any will do; empty is any",
                               .max_bytes = kMaxLabel,
                               .change = Change::Pending,
                               .column = "models"}),
      field<&Request::see_all>(
          {.name = "see_all", .help = "sees every GPU and holds none", .change = Change::Pending}),
      field<&Request::cpus>({.name = "cpus",
                             .help = "CPUs on each node; 0 is not counted",
                             .range = kCpuRange,
                             .change = Change::Pending,
                             .stored = Stored::Always}),
      field<&Request::memory>({.name = "memory_bytes",
                               .help = "host memory on each node; 0 is neither counted nor limited",
                               .range = kMemoryRange,
                               .change = Change::Pending,
                               .stored = Stored::Always}),
      field<&Request::nodes>({.name = "nodes",
                              .help = "nodes, all of them at once",
                              .range = {1, 100'000},
                              .change = Change::Pending}),
      field<&Request::selector>({.name = "selector",
                                 .help = "labels each of its nodes must have",
                                 .max_bytes = kMaxLabel,
                                 .change = Change::Pending}),
  };
};

template <>
struct Description<Dependencies> {
  static constexpr std::tuple kFields{
      field<&Dependencies::jobs>({.name = "jobs",
                                  .help = "jobs that have to finish first",
                                  .change = Change::Pending,
                                  .stored = Stored::Elsewhere}),
      field<&Dependencies::mode>({.name = "mode",
                                  .help = "whether all of them have to, or any",
                                  .change = Change::Pending,
                                  .stored = Stored::Always,
                                  .column = "dependency_mode"}),
      field<&Dependencies::auto_cancel>({.name = "auto_cancel",
                                         .help = "cancelled once that cannot happen any more",
                                         .change = Change::Pending,
                                         .stored = Stored::Always}),
  };
};

template <>
struct Description<JobSpec> {
  static constexpr std::tuple kFields{
      field<&JobSpec::name>({.name = "name",
                             .help = "its name; one is made up for an empty one",
                             .max_bytes = kMaxName,
                             .letters = Letters::Name,
                             .change = Change::Active,
                             .stored = Stored::Always,
                             .alias = "job"}),
      field<&JobSpec::user>({.name = "user", .help = "user", .wire = Wire::Elsewhere}),
      field<&JobSpec::project>({.name = "project",
                                .help = "the project it belongs to",
                                .max_bytes = kMaxProject,
                                .max_characters = kMaxProjectCharacters,
                                .letters = Letters::TrimmedName,
                                .change = Change::Pending,
                                .stored = Stored::Always,
                                .alias = "project"}),
      field<&JobSpec::request>(
          {.name = "request", .help = "what it holds while it runs", .change = Change::Pending}),
      field<&JobSpec::priority>({.name = "priority",
                                 .help = "0 to 255, higher goes first",
                                 .range = {0, kMaxPriority},
                                 .change = Change::Active,
                                 .stored = Stored::Always}),
      field<&JobSpec::time_limit>({.name = "time_limit_seconds",
                                   .help = "time limit",
                                   .range = kTimeLimitRange,
                                   .change = Change::Active}),
      field<&JobSpec::grace>({.name = "grace_seconds",
                              .help = "between SIGTERM and SIGKILL when it is stopped",
                              .range = {0, 86400},
                              .change = Change::Pending,
                              .stored = Stored::Always}),
      field<&JobSpec::begin>(
          {.name = "begin", .help = "not before this time", .column = "begin_ms"}),
      field<&JobSpec::dependencies>({.name = "dependencies",
                                     .help = "which jobs have to finish first",
                                     .change = Change::Pending}),
      field<&JobSpec::hold>(
          {.name = "hold", .help = "submitted on hold", .stored = Stored::Always}),
      field<&JobSpec::requeue>({.name = "requeue",
                                .help = "runs again if the machine or its supervisor goes down",
                                .change = Change::Active,
                                .stored = Stored::Always}),
      field<&JobSpec::max_retries>({.name = "max_retries",
                                    .help = "runs again up to so many times if it fails",
                                    .range = kCountRange,
                                    .change = Change::Active,
                                    .stored = Stored::Always}),
      field<&JobSpec::preemption>({.name = "preemption",
                                   .help = "what may be done to it for a job ahead of it",
                                   .change = Change::Active}),
      field<&JobSpec::preempt_signal>(
          {.name = "preempt_signal",
           .help = "sent instead of SIGTERM when it is preempted; 0 is SIGTERM",
           .range = kSignalRange,
           .change = Change::Active}),
      field<&JobSpec::group>({.name = "group",
                              .help = "jobs of one group share max_concurrent",
                              .max_bytes = kMaxGroup,
                              .letters = Letters::Name,
                              .stored = Stored::Always,
                              .alias = "group"}),
      field<&JobSpec::max_concurrent>(
          {.name = "max_concurrent",
           .help = "most jobs of its group running at once; 0: no limit",
           .range = kCountRange,
           .change = Change::Active,
           .stored = Stored::Always}),
      field<&JobSpec::allocation>(
          {.name = "allocation",
           .help = "it runs nothing, and holds its GPUs for a program outside (galloc)"}),
      field<&JobSpec::command>(
          {.name = "command",
           .help = "the command in one line; one is made of argv for an empty one",
           .max_bytes = kMaxCommand,
           .stored = Stored::Always,
           .sight = Sight::Owner}),
      field<&JobSpec::work_dir>({.name = "work_dir",
                                 .help = "the directory it runs in, absolute",
                                 .max_bytes = kMaxPath,
                                 .stored = Stored::Always,
                                 .sight = Sight::Owner}),
  };
};

template <>
struct Description<Allocation> {
  static constexpr std::tuple kFields{
      field<&Allocation::node>({.name = "node", .help = "name of the node"}),
      field<&Allocation::gpus>({.name = "gpus",
                                .help = "GPUs it holds there, by index",
                                .range = kGpuRange,
                                .stored = Stored::Always,
                                .column = "gpu_indices"}),
      field<&Allocation::cpus>({.name = "cpus",
                                .help = "CPUs chosen for it there; empty: any",
                                .range = kCpuRange,
                                .column = "cpu_list"}),
  };
};

template <>
struct Description<Attempt> {
  static constexpr std::tuple kFields{
      field<&Attempt::number>({.name = "attempt",
                               .help = "which run of the job it is, from 1",
                               .stored = Stored::Always}),
      field<&Attempt::allocation>({.name = "allocation", .help = "on the first node"}),
      field<&Attempt::peers>({.name = "peers", .help = "the same on its further nodes"}),
      field<&Attempt::placed_because>(
          {.name = "placed_because", .help = "why it was placed there"}),
      field<&Attempt::started>({.name = "started",
                                .help = "when it was started",
                                .stored = Stored::Always,
                                .column = "started_ms"}),
      field<&Attempt::started_mono>({.name = "started_mono_ms",
                                     .help = "the same on the clock of that boot",
                                     .stored = Stored::Always}),
      field<&Attempt::boot_id>({.name = "boot_id",
                                .help = "the boot of the machine it was started in",
                                .stored = Stored::Always}),
      field<&Attempt::pid>(
          {.name = "pid", .help = "its first process; 0: not known yet", .stored = Stored::Always}),
      field<&Attempt::over_memory>(
          {.name = "over_memory", .help = "it used more GPU memory than is reserved for it"}),
      field<&Attempt::on_other_gpus>(
          {.name = "on_other_gpus", .help = "it used a GPU it does not hold"}),
      field<&Attempt::borrows>({.name = "borrows", .help = "a GPU of it was lent to it"}),
  };
};

template <>
struct Description<Outcome> {
  static constexpr std::tuple kFields{
      field<&Outcome::reason>({.name = "reason",
                               .help = "why it ended",
                               .stored = Stored::Always,
                               .column = "end_reason"}),
      field<&Outcome::exit_code>(
          {.name = "exit_code", .help = "of its first process", .stored = Stored::Always}),
      field<&Outcome::signal>(
          {.name = "signal", .help = "that ended it; 0: none", .stored = Stored::Always}),
      field<&Outcome::message>(
          {.name = "message", .help = "what else is known", .stored = Stored::Always}),
      field<&Outcome::run_time>({.name = "run_time_seconds",
                                 .help = "how long it ran, without suspension",
                                 .stored = Stored::Always,
                                 .column = "run_time_ms"}),
      field<&Outcome::cpu_time>({.name = "cpu_time_seconds",
                                 .help = "CPU time of all its processes",
                                 .stored = Stored::Always,
                                 .column = "cpu_time_ms"}),
      field<&Outcome::peak_memory>({.name = "peak_memory_bytes",
                                    .help = "most host memory it used",
                                    .stored = Stored::Always,
                                    .wire = Wire::NullIfDefault}),
      field<&Outcome::peak_gpu_memory>({.name = "peak_gpu_memory_bytes",
                                        .help = "most memory it used on one of its GPUs",
                                        .wire = Wire::NullIfDefault}),
  };
};

template <>
struct Description<Stop> {
  static constexpr std::tuple kFields{
      field<&Stop::reason>(
          {.name = "stop_reason", .help = "why it was told to stop", .stored = Stored::Always}),
      field<&Stop::by>({.name = "stop_by", .help = "who asked for it", .prefix = "stop_"}),
      field<&Stop::signal>({.name = "stop_signal",
                            .help = "sent instead of SIGTERM; 0: none",
                            .stored = Stored::Always}),
  };
};

/// How long it has not run in its present attempt.
template <>
struct Description<Running> {
  static constexpr std::tuple kFields{
      field<&Running::suspended>(
          {.name = "suspended_mono_ms", .help = "since when it is suspended"}),
      field<&Running::stood>({.name = "stood_ms", .help = "how long it was suspended before"}),
      field<&Running::suspended_by>(
          {.name = "suspended_by", .help = "who suspended it; empty: gflow, to make room"}),
      field<&Running::lends>({.name = "lends", .help = "its GPU is idle, and another's meanwhile"}),
      field<&Running::move_refused>(
          {.name = "move_refused", .help = "why it could not be moved to another GPU"}),
  };
};

template <>
struct Description<GpuMove> {
  static constexpr std::tuple kFields{
      field<&GpuMove::from>({.name = "move_from",
                             .help = "the GPU that it moves away from",
                             .stored = Stored::Always}),
      field<&GpuMove::to>(
          {.name = "move_to", .help = "the GPU that it moves to", .stored = Stored::Always}),
      field<&GpuMove::from_uuid>({.name = "move_from_uuid",
                                  .help = "UUID of the GPU that it moves away from",
                                  .stored = Stored::Always}),
      field<&GpuMove::to_uuid>({.name = "move_to_uuid",
                                .help = "UUID of the GPU that it moves to",
                                .stored = Stored::Always}),
  };
};

template <>
struct Description<Ended> {
  static constexpr std::tuple kFields{
      field<&Ended::outcome>({.name = "outcome", .help = "how it ended"}),
      field<&Ended::at>(
          {.name = "ended", .help = "end time", .stored = Stored::Always, .column = "ended_ms"}),
      field<&Ended::lived>({.name = "lived_ms",
                            .help = "the time gflow had seen pass by then",
                            .wire = Wire::Elsewhere}),
  };
};

/// The counters a job carries besides its specification and its state.
template <>
struct Description<Job> {
  static constexpr std::tuple kFields{
      field<&Job::spec>({.name = "spec", .help = "what was asked for"}),
      field<&Job::submitted>({.name = "submitted",
                              .help = "submission time",
                              .stored = Stored::Always,
                              .column = "submitted_ms"}),
      field<&Job::lived>({.name = "submitted_lived_ms",
                          .help = "the time gflow had seen pass by then",
                          .wire = Wire::Elsewhere}),
      field<&Job::payload_bytes>({.name = "payload_bytes",
                                  .help = "what is stored of what it runs",
                                  .wire = Wire::Elsewhere}),
      field<&Job::attempts>(
          {.name = "attempts", .help = "runs started so far", .stored = Stored::Always}),
      field<&Job::retries>({.name = "retries",
                            .help = "of them, how many replaced a failed run",
                            .stored = Stored::Always}),
      field<&Job::preemptions>({.name = "preemptions", .help = "of them, how many were preempted"}),
      field<&Job::served>({.name = "served_seconds",
                           .help = "run time of the attempts before the present one",
                           .column = "served_ms"}),
      field<&Job::served_gpu_time>({.name = "served_gpu_ms",
                                    .help = "GPU time of these, a share counting as its part",
                                    .wire = Wire::Elsewhere}),
  };
};

/// All members of a job: a new one does not compile until it is named here and has a row above.
/// Those that copy jobs by hand assert how many rows there are.
constexpr auto members_of(const Job& job) {
  const auto& [id,
               spec,
               state,
               submitted,
               lived,
               payload_bytes,
               attempts,
               retries,
               preemptions,
               served,
               served_gpu_time] = job;
  return std::tie(id,
                  spec,
                  state,
                  submitted,
                  lived,
                  payload_bytes,
                  attempts,
                  retries,
                  preemptions,
                  served,
                  served_gpu_time);
}
inline constexpr std::size_t kJobFields = std::tuple_size_v<decltype(Description<Job>::kFields)>;
/// The id has no row, nor has the state, whose parts have theirs.
static_assert(std::tuple_size_v<decltype(members_of(std::declval<const Job&>()))> ==
              kJobFields + 2);

/// What was asked for, row by row. Errors: Code::Usage naming a number that is out of its range, a
/// text that is too long, or a list of too many.
[[nodiscard]] Result<void> check_fields(const JobSpec& spec);
/// Calls visit(text, alias) for each text of a job that tells who people are or what they work on.
template <class Visit>
void each_alias(JobSpec& spec, Visit&& visit) {
  each_leaf(
      [&visit](const auto& row, auto& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>) {
          if (!row.alias.empty()) visit(value, row.alias);
        }
      },
      spec);
}
/// Empties what only the owner is shown.
void hide_private(JobSpec& spec);
/// Empties what it is called: the texts that each_alias() shows.
void hide_names(JobSpec& spec);

}  // namespace gflow
