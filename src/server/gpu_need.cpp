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

/// Whether that is what is told of an allocation. What is not said is as it is.
bool is_told(const api::GpuNeed& need, const api::GpuConfig& told) {
  const api::GpuNeed usual;
  return need.gpu_count == told.gpu_count &&
         (need.gpu_type.empty() || to_lower(need.gpu_type) == to_lower(told.gpu_type)) &&
         (need.memory_gb == usual.memory_gb || need.memory_gb == told.memory_gb) &&
         (need.compute_ratio == usual.compute_ratio || need.compute_ratio == told.compute_ratio);
}

}  // namespace

Result<void> read_gpu_type(std::string_view text, gflow::Request& into) {
  const std::string_view type = trim(text);
  if (type.empty() || to_lower(type) == "any") return {};
  if (type.contains(',')) {
    return fail(
        Code::Usage,
        tr_format("gpu_type: '{}' has a comma; models have '|' between them, as 'V100|A100'",
                  printable(type)));
  }
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
                  tr("gpus specifies the whole request: omit gpu_count, gpu_type, memory_gb and "
                     "compute_ratio, or use them instead of it"));
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

Result<void> check_is_of(const api::GpuNeed& need,
                         const Job& allocation,
                         const std::optional<api::GpuConfig>& told) {
  if (need.wait || need.ttl_seconds != 0 || need.pid != 0 || need.wait_pid != 0) {
    return fail(Code::Usage,
                tr("allocation_id names an existing allocation, which is not changed: omit wait, "
                   "ttl_seconds, pid and wait_pid"));
  }
  if (need.gpus.empty() && !says_more(need)) return {};
  const gflow::Request& has = allocation.spec.request;
  const gflow::Request wanted = GF_TRY(request_of(need));
  if (wanted == has || (told && need.gpus.empty() && is_told(need, *told))) return {};
  return fail(Code::Usage,
              tr_format("allocation {} is {}, not {}: omit what it is, or allocate another one",
                        allocation.id.value,
                        gpu_request_text(has),
                        gpu_request_text(wanted)));
}

}  // namespace gflow::server
