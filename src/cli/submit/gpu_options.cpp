// SPDX-License-Identifier: Apache-2.0
#include "cli/submit/gpu_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "cli/job/signals.h"

namespace gflow::cli {

namespace {

/// --gpu-model: what stands in the brackets of a request.
Result<void> read_model(const std::string& text, const GpuResources& resources, Request& request) {
  if (request.gpus == 0 && !request.see_all) {
    return fail(Code::Usage, tr("--gpu-model requires --gpus"));
  }
  if (!request.vendor.empty() || !request.models.empty()) {
    return fail(Code::Usage, tr("--gpu-model: --gpus already names a model; give it only once"));
  }
  const auto kind = read_gpu_request(fmt::format("1({})", text), resources);
  if (!kind) {
    const GpuRequestMistake& mistake = kind.error();
    return fail(Code::Usage,
                tr_format("--gpu-model '{}': {}{}{}",
                          printable(text),
                          mistake.what,
                          mistake.instead.empty() ? "" : tr("; "),
                          mistake.instead));
  }
  request.vendor = kind->vendor;
  request.models = kind->models;
  return {};
}

Result<void> read_memory(const std::string& text, Request& request) {
  if (request.gpus == 0) {
    return fail(Code::Usage, tr("--gpu-memory requires --gpus"));
  }
  const auto memory = parse_memory(text);
  if (!memory) return with_context(memory.error(), "--gpu-memory");
  if (request.gpu_memory.bytes > 0 && request.gpu_memory != *memory) {
    return fail(Code::Usage,
                tr_format("--gpu-memory: --gpus already requests {} of memory; give it only once",
                          memory_text(request.gpu_memory)));
  }
  request.gpu_memory = *memory;
  return {};
}

Result<void> read_shared(Request& request) {
  if (request.gpus == 0) {
    return fail(Code::Usage, tr("--shared requires --gpus"));
  }
  if (request.mode == GpuMode::Fraction) {
    return fail(Code::Usage,
                tr("--shared time-slices whole GPUs; a part such as 0.5 is shared without it"));
  }
  if (request.gpu_memory.bytes == 0) {
    return fail(
        Code::Usage,
        tr("--shared requires --gpu-memory: time-sliced jobs hold their GPU memory all the time"));
  }
  request.mode = GpuMode::TimeSlice;
  return {};
}

Result<Label> read_label(std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string key(trim(text.substr(0, equals)));
  const auto plain = [](char c) {
    return (ascii_upper(c) >= 'A' && ascii_upper(c) <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./").find(c) != std::string_view::npos;
  };
  if (equals == std::string_view::npos || key.empty() || !std::ranges::all_of(key, plain)) {
    return fail(
        Code::Usage,
        tr_format("--constraint: '{}' is not a node label; write key=value", printable(text)));
  }
  const std::string value(trim(text.substr(equals + 1)));
  if (!std::ranges::all_of(value, plain)) {
    return fail(
        Code::Usage,
        tr_format("--constraint: '{}' has characters that a label cannot have", printable(value)));
  }
  return Label{key, value};
}

}  // namespace

std::vector<Option> gpu_options() {
  return {
      {.name = "gpus",
       .letters = "g",
       .aliases = {"gres", "gpus-per-node"},
       .value = "REQUEST",
       .help = tr("GPUs: 2, a part 0.5, a part with a limit 0.3..1, a model 2(V100) or "
                  "1(A100|H100), with memory 8G,0.5 or 2(A100),40G; Slurm's gpu:v100:2 is accepted "
                  "(default: 0). 'gflow spec' explains "
                  "a request."),
       .group = tr("Resources")},
      {.name = "gpu-memory",
       .aliases = {"max-gpu-mem", "max-gpu-memory"},
       .value = "SIZE",
       .help = tr("Memory that must be free on each GPU before the job starts: 8G; a plain number "
                  "is in MiB."),
       .group = tr("Resources")},
      {.name = "gpu-model",
       .value = "MODEL",
       .help = tr("GPU model or vendor, as in the brackets of --gpus: V100, 'A100|H100', nvidia."),
       .group = tr("Resources")},
      {.name = "shared",
       .help = tr("Time-slice the GPUs with other such jobs. Requires --gpu-memory, as all of them "
                  "keep their memory on the GPU."),
       .group = tr("Resources")},
  };
}

std::vector<Option> node_options() {
  return {
      {.name = "nodes",
       .letters = "N",
       .value = "N",
       .help = tr("Number of nodes, with all of the above on each (default: 1)."),
       .group = tr("Resources")},
      {.name = "constraint",
       .letters = "C",
       .value = "KEY=VALUE",
       .help = tr("Run only on nodes with this label; separate several with commas."),
       .group = tr("Resources"),
       .repeatable = true},
  };
}

Result<void> read_gpu_options(const Invocation& invocation,
                              const GpuResources& resources,
                              Request& request) {
  if (invocation.has("gpus")) {
    const auto gpus = parse_gpu_request(invocation.get("gpus"), resources);
    if (!gpus) return with_context(gpus.error(), "--gpus");
    apply(*gpus, request);
  }
  if (invocation.has("gpu-model")) {
    GF_CHECK(read_model(invocation.get("gpu-model"), resources, request));
  }
  if (invocation.has("gpu-memory")) {
    GF_CHECK(read_memory(invocation.get("gpu-memory"), request));
  }
  if (invocation.has("shared")) GF_CHECK(read_shared(request));
  return {};
}

Result<void> read_node_options(const Invocation& invocation, Request& request) {
  if (invocation.has("nodes")) {
    const auto nodes = parse_number(trim(invocation.get("nodes")));
    constexpr std::uint64_t kMax = 100'000;
    if (!nodes || *nodes == 0 || *nodes > kMax) {
      return fail(Code::Usage,
                  tr_format("--nodes: '{}' is not a number from 1 to {}",
                            printable(invocation.get("nodes")),
                            kMax));
    }
    request.nodes = static_cast<int>(*nodes);
  }
  for (const std::string& list : invocation.all("constraint")) {
    for (const std::string_view piece : split(list, ',')) {
      Label label = GF_TRY(read_label(piece));
      const auto same = std::ranges::find(request.selector, label.key, &Label::key);
      if (same != request.selector.end() && same->value != label.value) {
        return fail(
            Code::Usage,
            tr_format("--constraint: '{}' is given two values; a node has only one", label.key));
      }
      if (same == request.selector.end()) request.selector.push_back(std::move(label));
    }
  }
  return {};
}

Result<Preemption> read_preemption(std::string_view text) {
  for (const Preemption preemption : {Preemption::None, Preemption::Requeue, Preemption::Suspend}) {
    if (to_lower(trim(text)) == preemption_name(preemption)) return preemption;
  }
  return fail(Code::Usage,
              tr_format("--preemptible: '{}' is neither requeue nor suspend", printable(text)));
}

Result<int> read_preempt_signal(std::string_view text) {
  auto signal = parse_signal(text);
  if (!signal) return with_context(signal.error(), "--preempt-signal");
  return signal;
}

}  // namespace gflow::cli
