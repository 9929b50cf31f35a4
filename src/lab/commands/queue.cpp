// SPDX-License-Identifier: Apache-2.0
#include "lab/queue.h"

#include "lab/commands/experiment.h"
#include "lab/data_file.h"

namespace gflow::cli {
namespace {

constexpr const char* kFile = "philly_jobs.csv.gz";

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const lab::QueueCase one : lab::queue_cases()) {
    names.emplace_back(lab::queue_case_name(one));
  }
  return names;
}

Result<int> run_lab_queue(const Invocation& invocation, Context& context) {
  const std::string text = GF_TRY(lab::read_data(data_directory(invocation), "traces", kFile));
  const lab::Trace trace = GF_TRY(lab::read_trace(text, kFile));
  std::vector<lab::QueueCase> cases = lab::queue_cases();
  if (invocation.has("case")) {
    std::erase_if(cases, [&](lab::QueueCase one) {
      return lab::queue_case_name(one) != invocation.get("case");
    });
  }
  ProgressLine line(context);
  const auto rows = GF_TRY(lab::queue_rows(trace, cases, {}, line.callback()));
  line.wipe();
  return give(lab::queue_report(rows), invocation, context);
}

}  // namespace

Command lab_queue_command() {
  Command command{
      .name = "queue",
      .summary = "how long jobs wait, by who orders the queue",
      .usage = {"[--case NAME] [--data DIR]"},
      .description =
          "Plays jobs of the Philly trace (Jeon et al., USENIX ATC 2019) on equal machines: first "
          "in "
          "first out, first fit, EASY backfill and two queues by attained service as other "
          "schedulers have them, then the engine of the daemon with its defaults, with and without "
          "time limits and jobs that may be stopped. A job that was stopped loses 60 s with each "
          "new start.",
      .options = {{.name = "case",
                   .value = "NAME",
                   .help =
                       "cluster: a month of all jobs on 64 nodes of 8 GPUs; lab-server: the jobs "
                       "of one group on 2 nodes of 8. Both, if not given.",
                   .choices = case_names()},
                  data_option()},
      .examples = {{"gflow lab queue --data data", "what an order is worth"}},
      .run = run_lab_queue,
  };
  for (Option& option : output_options()) command.options.push_back(std::move(option));
  return command;
}

}  // namespace gflow::cli
