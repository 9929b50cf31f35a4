// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "lab/commands/experiment.h"
#include "lab/data_file.h"
#include "lab/replay.h"
#include "lab/snapshot.h"

namespace gflow::cli {
namespace {

constexpr const char* kDefaultRestart = "60s";

Result<lab::Subject> trace_subject(const std::string& text,
                                   const std::string& file,
                                   const Invocation& invocation) {
  lab::Trace trace = GF_TRY(lab::read_trace(text, file));
  if (!invocation.has("nodes")) {
    return fail(Code::Usage,
                tr("a trace does not describe the machines; give '--nodes 64x8' (64 nodes with 8 "
                   "GPUs each) or '--nodes sim:8xH100'"));
  }
  if (invocation.has("days")) {
    const Days days = GF_TRY(read_days(invocation.get("days")));
    trace = lab::days_of(std::move(trace), days.first, days.last);
    if (trace.jobs.empty()) {
      return fail(Code::NotFound, tr_format("{}: no jobs on these days", printable(file)));
    }
  }
  for (const Preemption kind : {Preemption::None, Preemption::Requeue, Preemption::Suspend}) {
    if (invocation.get("preemption") != preemption_name(kind)) continue;
    for (lab::TraceJob& job : trace.jobs) job.spec.preemption = kind;
  }
  auto fleet = GF_TRY(lab::read_fleet(invocation.get("nodes")));
  return lab::subject_of(std::move(trace), std::move(fleet), file);
}

/// A snapshot is a JSON object; no trace begins with a brace.
Result<lab::Subject> read_subject(const std::string& file, const Invocation& invocation) {
  const std::string text = GF_TRY(lab::read_data(file));
  if (!trim(std::string_view(text).substr(0, 4096)).starts_with('{')) {
    return trace_subject(text, file, invocation);
  }
  for (const char* option : {"days", "preemption"}) {
    if (!invocation.has(option)) continue;
    return fail(Code::Usage, tr_format("--{} applies only to traces; this is a snapshot", option));
  }
  return lab::read_snapshot(text, file);
}

using Settings = std::vector<std::pair<std::string, std::string>>;

Result<Settings> read_settings(const Invocation& invocation) {
  Settings settings;
  for (const std::string& text : invocation.all("set")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) {
      return fail(Code::Usage, tr_format("--set needs NAME=VALUE, not '{}'", printable(text)));
    }
    settings.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return settings;
}

/// One what-if for each policy and order that was named, with all other changes.
Result<std::vector<lab::WhatIf>> read_what_ifs(const Invocation& invocation, bool snapshot) {
  lab::WhatIf all;
  all.add_nodes = invocation.all("add-node");
  all.remove_nodes = invocation.all("remove-node");
  if (snapshot && invocation.has("nodes")) all.nodes = invocation.get("nodes");
  all.settings = GF_TRY(read_settings(invocation));
  std::vector<lab::WhatIf> variants = {all};
  for (const auto& [option, setting] :
       {std::pair("policy", "placement.policy"), std::pair("order", "scheduler.order")}) {
    const std::vector<std::string> values = invocation.all(option);
    if (values.empty()) continue;
    std::vector<lab::WhatIf> more;
    for (const lab::WhatIf& variant : variants) {
      for (const std::string& value : values) {
        more.push_back(variant);
        more.back().settings.emplace_back(setting, value);
      }
    }
    variants = std::move(more);
  }
  std::erase_if(variants, [](const lab::WhatIf& one) { return one.changes_nothing(); });
  return variants;
}

Result<int> run_replay(const Invocation& invocation, Context& context) {
  const lab::Subject subject = GF_TRY(read_subject(invocation.words.front(), invocation));
  lab::RunnerRules rules;
  const std::string restart = invocation.has("restart-cost") ? invocation.get("restart-cost")
                                                             : std::string(kDefaultRestart);
  rules.restart_cost = restart == "0" ? std::chrono::seconds(0) : GF_TRY(parse_duration(restart));
  const auto variants = GF_TRY(read_what_ifs(invocation, subject.submissions.empty()));
  std::vector<lab::Subject> others;
  for (const lab::WhatIf& what_if : variants) {
    others.push_back(GF_TRY(lab::changed(subject, what_if)));
  }
  std::vector<lab::Played> runs;
  {
    ProgressLine line(context);
    auto was = lab::as_it_was(subject);
    const std::string first = was ? "gflow" : "as it is";
    if (was) runs.push_back(*std::move(was));
    runs.push_back(lab::play(subject, rules, first, line.callback()));
    for (std::size_t i = 0; i < others.size(); ++i) {
      runs.push_back(lab::play(others[i], rules, variants[i].text(), line.callback()));
    }
  }
  return give(lab::replay_report(subject, runs), invocation, context);
}

std::vector<Option> what_if_options() {
  return {{.name = "add-node",
           .value = "sim:MODELS",
           .help = tr("Add a node, such as 'sim:8xH100'."),
           .group = tr("What if"),
           .repeatable = true},
          {.name = "remove-node",
           .value = "NAME",
           .help = tr("Remove this node."),
           .group = tr("What if"),
           .repeatable = true},
          {.name = "policy",
           .value = "NAME",
           .help = tr("Use this placement policy; repeat to compare."),
           .group = tr("What if"),
           .repeatable = true},
          {.name = "order",
           .value = "NAME",
           .help = tr("Use this queue order; repeat to compare."),
           .group = tr("What if"),
           .repeatable = true},
          {.name = "set",
           .value = "NAME=VALUE",
           .help = tr("Change a setting: scheduler.preempt=false."),
           .group = tr("What if"),
           .repeatable = true}};
}

}  // namespace

Command lab_replay_command() {
  Command command{
      .name = "replay",
      .summary = tr("replay a trace or a snapshot, with what-if changes"),
      .usage = {"[options] FILE"},
      .description =
          tr("Replays the jobs of FILE through the daemon's engine on a virtual clock: the "
             "decisions are the daemon's, only the waiting is skipped. FILE is a snapshot of 'gctl "
             "snapshot', or a trace as CSV (submit, duration, gpus, user; docs/format/trace.md), "
             "gzip-compressed or not; the Philly trace is read as published, and what 'sacct "
             "--parsable2' of Slurm prints, beside whose waits gflow's stand then.\n\nWith "
             "changes, the "
             "unchanged run comes first and each changed run is compared with it. Jobs of a "
             "snapshot get the run times that similar jobs had before; see docs/lab.md."),
      .options = {{.name = "nodes",
                   .value = "NODES",
                   .help = tr("Nodes: '64x8' is 64 nodes with 8 GPUs each, '4x8xA100' names the "
                              "model, 'sim:8xH100' is one node. Required for a trace; replaces the "
                              "nodes of a snapshot.")},
                  days_option(),
                  {.name = "preemption",
                   .value = "HOW",
                   .help = tr("For a trace: how all jobs may be preempted: none, requeue or "
                              "suspend (default: as the trace says)."),
                   .choices = {"none", "requeue", "suspend"}},
                  {.name = "restart-cost",
                   .value = "TIME",
                   .help = tr("Time a preempted job loses when it restarts (default: 60s).")}},
      .words = {.name = "FILE",
                .help = tr("A snapshot or a trace."),
                .least = 1,
                .most = 1,
                .complete = Complete::File},
      .examples = {{"gctl snapshot -o now.json", tr("Input")},
                   {"gflow lab replay now.json --add-node sim:8xH100",
                    tr("would another node help?")},
                   {"gflow lab replay philly_jobs.csv.gz --nodes 64x8 --days 28-58",
                    tr("a trace")}},
      .run = run_replay,
  };
  for (Option& option : what_if_options()) command.options.push_back(std::move(option));
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

}  // namespace gflow::cli
