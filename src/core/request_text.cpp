// SPDX-License-Identifier: Apache-2.0
#include "core/request_text.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translate.h"
#include "core/gpu_request.h"

namespace gflow {
namespace {

/// "V100 or A100 ", "nvidia ", "" before the word GPU.
std::string kind_before(const Request& request) {
  std::string kind = printable(join(request.models, tr(" or ")));
  if (kind.empty()) kind = printable(request.vendor);
  return kind.empty() ? "" : kind + " ";
}

/// "a V100 GPU", "an A100 GPU", "an intel GPU", "a GPU". Names of capitals are spelled out.
std::string one_device(const Request& request) {
  const std::string name = kind_before(request) + "GPU";
  const bool is_word = name.size() > 1 && name[1] >= 'a' && name[1] <= 'z';
  const std::string_view vowels = is_word ? "AEIOUaeioun" : "AEFHILMNORSX";
  return vowels.contains(name.front()) ? tr_format("an {}", name) : tr_format("a {}", name);
}

std::string devices(const Request& request) {
  const std::string kind = kind_before(request);
  return tr_count(
      static_cast<std::uint64_t>(request.gpus), "{} {}GPU", "{} {}GPUs", request.gpus, kind);
}

std::string fraction(const Request& request) {
  const std::string share =
      request.share == Share::percent(50) ? tr("half") : share_text(request.share);
  if (request.share_limit != Share{}) {
    return tr_format("{} of {}, up to {} of it where others leave it",
                     share,
                     one_device(request),
                     share_text(request.share_limit));
  }
  if (request.gpus == 1) return tr_format("{} of {}", share, one_device(request));
  return tr_format("{} of each of {}", share, devices(request));
}

}  // namespace

std::string gpus_in_words(const Request& request) {
  if (request.see_all) {
    const std::string kind = kind_before(request);
    if (kind.empty()) return tr("every GPU visible, none reserved");
    return tr_format("every GPU visible, none reserved, where there is {}", one_device(request));
  }
  if (request.gpus == 0) return tr("0 GPUs");
  std::string out = request.mode == GpuMode::Fraction ? fraction(request) : devices(request);
  if (request.mode == GpuMode::TimeSlice) out += tr(" time-sliced with others");
  if (request.gpu_memory.bytes == 0) return out;
  const bool whole = request.mode == GpuMode::Whole;
  const std::string memory = memory_text(request.gpu_memory);
  if (request.gpus == 1) {
    return whole ? tr_format("{}, {} free on it", out, memory)
                 : tr_format("{}, {} of memory on it", out, memory);
  }
  return whole ? tr_format("{}, {} free on each", out, memory)
               : tr_format("{}, {} of memory on each", out, memory);
}

std::string selector_text(const std::vector<Label>& selector) {
  std::vector<std::string> labels;
  for (const Label& label : selector) {
    if (!label.key.starts_with(kAdmitsPrefix)) labels.push_back(label.key + "=" + label.value);
  }
  return printable(join(labels, ","));
}

std::string request_in_words(const Request& request) {
  std::string out = gpus_in_words(request);
  if (request.cpus > 0) {
    out +=
        tr_count(static_cast<std::uint64_t>(request.cpus), ", {} CPU", ", {} CPUs", request.cpus);
  }
  if (request.memory.bytes > 0) out += tr_format(", {} memory", memory_text(request.memory));
  if (request.nodes > 1) out += tr_format(", on each of {} nodes", request.nodes);
  const std::string selector = selector_text(request.selector);
  if (!selector.empty()) out += tr_format(", where {}", selector);
  return out;
}

}  // namespace gflow
