// SPDX-License-Identifier: Apache-2.0
#include "lab/queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/time.h"
#include "base/translate.h"
#include "lab/commands/experiment.h"
#include "lab/data_file.h"

namespace gflow::cli {
namespace {

constexpr int kGpusOfNode = 8;

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const lab::PublicCase& one : lab::public_cases()) names.emplace_back(one.name);
  return names;
}

std::string case_help() {
  std::vector<std::string> cases;
  for (const lab::PublicCase& one : lab::public_cases()) {
    cases.push_back(fmt::format("{}: {}", one.name, tr(one.what)));
  }
  return fmt::format("{} {}", fmt::join(cases, "; "), tr("(default: all)."));
}

std::vector<std::string> mode_names() {
  std::vector<std::string> names;
  for (const lab::QueueMode mode : lab::queue_modes()) names.emplace_back(queue_mode_name(mode));
  return names;
}

Result<int> read_count(const Invocation& invocation, const char* option, int unless_given) {
  if (!invocation.has(option)) return unless_given;
  const auto count = parse_number(invocation.get(option));
  if (!count || *count < 1 || *count > 100'000) {
    return fail(Code::Usage, tr_format("--{} needs a number from 1 to 100000", option));
  }
  return static_cast<int>(*count);
}

Result<std::vector<lab::QueueCase>> read_public_cases(const Invocation& invocation) {
  for (const char* option : {"nodes", "gpus-per-node", "days"}) {
    if (!invocation.has(option)) continue;
    return fail(Code::Usage, tr_format("--{} requires --trace", option));
  }
  std::vector<lab::QueueCase> cases;
  for (const lab::PublicCase& one : lab::public_cases()) {
    if (invocation.has("case") && invocation.get("case") != one.name) continue;
    const std::string file(one.file);
    const std::string text = GF_TRY(lab::read_data(data_directory(invocation), "traces", file));
    const lab::Trace trace = GF_TRY(lab::read_trace(text, file));
    cases.push_back(GF_TRY(lab::queue_case(one, trace)));
  }
  return cases;
}

Result<std::vector<lab::QueueCase>> read_cases(const Invocation& invocation) {
  if (!invocation.has("trace")) return read_public_cases(invocation);
  const std::string file = invocation.get("trace");
  if (!invocation.has("nodes")) {
    return fail(Code::Usage,
                tr("a trace does not describe the machines; give their number with --nodes"));
  }
  const lab::EqualNodes machines{GF_TRY(read_count(invocation, "nodes", 1)),
                                 GF_TRY(read_count(invocation, "gpus-per-node", kGpusOfNode))};
  const std::string text = GF_TRY(lab::read_data(file));
  lab::Trace trace = GF_TRY(lab::read_trace(text, file));
  if (invocation.has("days")) {
    const Days days = GF_TRY(read_days(invocation.get("days")));
    trace = lab::days_of(std::move(trace), days.first, days.last);
  }
  if (trace.jobs.empty()) {
    return fail(Code::NotFound, tr_format("{}: no jobs on these days", printable(file)));
  }
  return std::vector<lab::QueueCase>{{file, machines, std::move(trace)}};
}

Result<lab::QueueRules> read_rules(const Invocation& invocation) {
  lab::QueueRules rules;
  if (invocation.has("mode")) {
    const std::vector<std::string> wanted = invocation.all("mode");
    std::erase_if(rules.modes, [&wanted](lab::QueueMode mode) {
      return std::ranges::find(wanted, queue_mode_name(mode)) == wanted.end();
    });
  }
  if (invocation.has("guard")) {
    rules.peers.guard = GF_TRY(parse_duration(invocation.get("guard")));
  }
  rules.frontier = invocation.has("frontier");
  return rules;
}

Result<int> run_lab_queue(const Invocation& invocation, Context& context) {
  const std::vector<lab::QueueCase> cases = GF_TRY(read_cases(invocation));
  const lab::QueueRules rules = GF_TRY(read_rules(invocation));
  ProgressLine line(context);
  const std::vector<lab::QueueRow> rows = lab::queue_rows(cases, rules, line.callback());
  line.wipe();
  if (rules.frontier) {
    const std::string file = invocation.get("frontier");
    GF_CHECK(draw(lab::queue_frontier(rows), "frontier", file, context));
  }
  return give(lab::queue_report(rows), invocation, context);
}

std::vector<Option> queue_options() {
  return {
      {.name = "case",
       .value = "NAME",
       .help = case_help(),
       .choices = case_names(),
       .excludes = {"trace"}},
      data_option(),
      {.name = "trace",
       .value = "FILE",
       .help = tr("Replay the jobs of this trace instead (docs/format/trace.md)."),
       .complete = Complete::File},
      {.name = "nodes", .value = "N", .help = tr("Number of nodes to replay the trace on.")},
      {.name = "gpus-per-node", .value = "N", .help = tr("GPUs per node (default: 8).")},
      days_option(),
      {.name = "mode",
       .value = "NAME",
       .help = tr(
           "nothing: no run time is known and no job is preemptible; limits: every job has a time "
           "limit, the least of 1, 4, 12 hours, 1, 3, 7, 14, 30, 60 days that it keeps within; "
           "preempting: no run time is known, but every job is preemptible (default: all)."),
       .repeatable = true,
       .choices = mode_names()},
      {.name = "guard",
       .value = "TIME",
       .help = tr("How long a job waits under the simple guard until nodes are reserved for it "
                  "(default: 7d).")},
      {.name = "frontier",
       .value = "FILE.svg",
       .help = tr("Run the simple guard with waiting times from 1 to 30 days, and plot the longest "
                  "wait against the mean to this file."),
       .complete = Complete::File,
       .excludes = {"guard"}}};
}

}  // namespace

Command lab_queue_command() {
  Command command{
      .name = "queue",
      .summary = tr("compare how long jobs wait under different queue orders"),
      .usage = {"[--case NAME] [--data DIR]", "--trace FILE --nodes N [--gpus-per-node N]"},
      .description =
          tr("Replays jobs of the public traces of Philly (Jeon et al., USENIX ATC 2019) and "
             "Helios (Hu et al., SC 2021), or of any other, on identical nodes, under first in "
             "first out, first fit, first fit with a guard (nodes are reserved for a job that has "
             "waited long, those expected to be free first), EASY backfill and two queues by "
             "attained service as other schedulers have them, and under the daemon's engine with "
             "its defaults, with and without time limits and preemptible jobs. A preempted job "
             "loses 60 s at each restart. OVERTAKEN counts jobs that started after a job that was "
             "submitted later and is no larger."),
      .options = queue_options(),
      .examples = {{"gflow lab queue --data data", tr("compare queue orders")},
                   {"gflow lab queue --trace jobs.csv --nodes 4",
                    tr("the same for your own jobs")}},
      .run = run_lab_queue,
  };
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

}  // namespace gflow::cli
