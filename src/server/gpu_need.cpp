// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_need.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/translate.h"
#include "core/gpu_request.h"

namespace gflow::server {
namespace {

/// Whole MiB, rounded up, as requests have it.
Memory memory_of(double gb) {
  constexpr double kMibPerGb = 1024;
  return Memory::mib(static_cast<std::int64_t>(std::ceil(gb * kMibPerGb)));
}

/// Whether it has what stands for `gpus`, too.
bool says_more(const api::GpuNeed& need) {
  const api::GpuNeed usual;
  return need.gpu_count != usual.gpu_count || need.gpu_type != usual.gpu_type ||
         need.memory_gb != usual.memory_gb || need.compute_ratio != usual.compute_ratio;
}

}  // namespace

Result<void> read_gpu_type(std::string_view text, gflow::Request& into) {
  const std::string_view type = trim(text);
  if (type.empty() || to_lower(type) == "any") return {};
  if (const auto vendor = read_vendor(type)) {
    into.vendor = *vendor;
  } else {
    for (const std::string_view model : split(type, '|')) into.models.emplace_back(trim(model));
  }
  return normalise(into);
}

Result<gflow::Request> request_of(const api::GpuNeed& need) {
  gflow::Request request;
  if (!need.gpus.empty()) {
    if (says_more(need)) {
      return fail(Code::Usage,
                  tr("gpus says all of it: leave gpu_count, gpu_type, memory_gb and compute_ratio "
                     "out, or say it with these"));
    }
    apply(GF_TRY(parse_gpu_request(need.gpus)), request);
    return request;
  }
  request.gpus = need.gpu_count;
  request.gpu_memory = memory_of(need.memory_gb);
  if (need.compute_ratio < 1) {
    const auto parts = std::llround(need.compute_ratio * Share::kWholeParts);
    request.share.parts = static_cast<int>(std::clamp<long long>(parts, 1, Share::kWholeParts));
    request.mode = request.share == Share::whole() ? GpuMode::Whole : GpuMode::Fraction;
  }
  GF_CHECK(read_gpu_type(need.gpu_type, request));
  GF_CHECK(normalise(request));
  return request;
}

}  // namespace gflow::server
