// SPDX-License-Identifier: Apache-2.0
#include <ostream>

#include "base/text.h"
#include "base/translate.h"
#include "cli/commands.h"
#include "cli/spec/spec_text.h"
#include "cli/submit/gpu_options.h"
#include "command/context.h"
#include "config/gpu_config.h"

namespace gflow::cli {

namespace {

Result<GpuConfig> configuration(const Invocation& invocation, const Context& context) {
  if (invocation.has("gpu-config")) {
    return config::read_gpu_config_file(invocation.get("gpu-config"));
  }
  return context.gpu_config();
}

Result<int> run_spec(const Invocation& invocation, Context& context) {
  const GpuConfig config = GF_TRY(configuration(invocation, context));
  const std::string& text = invocation.words.front();
  const auto gpus = read_gpu_request(text, config.resources);
  if (!gpus) {
    const GpuRequestMistake& mistake = gpus.error();
    context.error(
        {Code::Usage,
         mistake.instead.empty() ? mistake.what : mistake.what + tr("; ") + mistake.instead});
    context.err << marked_text(text, mistake);
    return exit_code(Code::Usage);
  }
  Request request;
  apply(*gpus, request);
  GF_CHECK(read_gpu_options(invocation, config.resources, request));
  const api::GpuSpecView view = api::gpu_spec_view(text, request, config.resources);
  context.out << (context.json ? api::write(view) + "\n"
                               : spec_text(view, config, context.paint, context.columns));
  return 0;
}

}  // namespace

Command spec_command() {
  Command command{
      .name = "spec",
      .summary = tr("explain a GPU request"),
      .usage = {"[options] REQUEST"},
      .description =
          tr("Explains what 'gbatch --gpus REQUEST' requests: the number of GPUs, the share of "
             "each, the model, how they are used, and the name of the resource in a cluster. An "
             "error is marked in the request, and the exit code is 2. Needs no daemon."),
      .words = {.name = "REQUEST",
                .help =
                    tr("As for --gpus: 2, 0.5, 2(V100), 1(nvidia,V100), 8G,0.5, 2(A100),40G, -1."),
                .least = 1,
                .most = 1},
      .examples = {{"gflow spec '8G,0.5'", tr("half a GPU with 8 GiB")},
                   {"gflow spec '2(A100|H100)'", tr("two GPUs of either model")},
                   {"gflow spec 1 --gpu-memory 16G --shared", tr("time-sliced with others")},
                   {"gflow spec -- -1", tr("a request that begins with a dash")}},
      .run = run_spec,
  };
  for (Option& option : gpu_options()) {
    option.group.clear();
    if (option.name != "gpus") command.options.push_back(std::move(option));
  }
  command.options.push_back({.name = "gpu-config",
                             .value = "FILE",
                             .help = tr("Read this gpu_config.yaml (also GFLOW_GPU_CONFIG)."),
                             .complete = Complete::File});
  return command;
}

}  // namespace gflow::cli
