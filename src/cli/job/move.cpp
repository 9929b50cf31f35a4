// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <ostream>
#include <string>

#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/job/act.h"
#include "cli/job/subcommands.h"
#include "cli/selection.h"
#include "command/context.h"

namespace gflow::cli {

namespace {

/// "1", "gpu1".
Result<int> read_gpu(std::string_view text) {
  const auto number = parse_number(text);
  if (number && *number <= std::numeric_limits<std::int16_t>::max()) {
    return static_cast<int>(*number);
  }
  return fail(
      Code::Usage,
      tr_format("--to: '{}' is not the number of a GPU: 'ginfo' lists them", printable(text)));
}

/// It may be over already. A daemon that went away meanwhile does not make untrue what was done.
Result<std::string> what_became(JobId id, Context& context) {
  const auto job = context.daemon().job(id);
  if (job && job->move) {
    return tr_format(
        "Job {} moves from GPU {} to GPU {}.\n", id.value, job->move->source, job->move->target);
  }
  if (job && !job->move_refused.empty()) {
    return fail(Code::WrongState,
                tr_format("job {} cannot be moved: {}", id.value, printable(job->move_refused)));
  }
  if (job && job->status == Status::Running && job->gpu_indices.size() == 1) {
    return tr_format("Job {} is on GPU {}.\n", id.value, job->gpu_indices.front());
  }
  return tr_format("Job {} moves to another GPU.\n", id.value);
}

Result<int> run_move(const Invocation& invocation, Context& context) {
  const auto jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  api::MoveRequest request;
  if (invocation.has("to")) request.gpu = GF_TRY(read_gpu(invocation.get("to")));
  request.running_only = invocation.has("running-only");
  if (jobs.size() > 1) return fail(Code::Usage, tr("one job moves at a time"));
  GF_TRY(context.daemon().move(jobs.front(), request));
  if (context.json) {
    context.out << api::write_job_ids({jobs.front()}) << '\n';
    return 0;
  }
  context.show(GF_TRY(what_became(jobs.front(), context)));
  return 0;
}

}  // namespace

Command job_move_command() {
  return {
      .name = "move",
      .summary = tr("move a running job to another GPU"),
      .usage = {"[--to GPU] [--running-only] JOB"},
      .description = tr(
          "The job runs on. What its programs have of the GPU is taken to host memory and given "
          "back on a free GPU of the same node, model and size, by the NVIDIA driver (580 or "
          "newer); their CUDA calls wait for those seconds. It holds both GPUs until then. Only a "
          "job with one whole GPU moves. Environment variables of its programs stay what they "
          "were."),
      .options = {{.name = "to",
                   .value = "GPU",
                   .help = tr("The GPU, by number; one is chosen if it is not given.")},
                  {.name = "running-only",
                   .help = tr("Move it although programs of it that begin to use a GPU later use "
                              "the one it was on.")}},
      .words = jobs_to_act_on(),
      .examples = {{"gjob move 42 --to 1", tr("move it to GPU 1")}},
      .run = run_move,
  };
}

}  // namespace gflow::cli
