// SPDX-License-Identifier: Apache-2.0
#include "server/gpu_need.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/translate.h"
#include "core/catalogue.h"
#include "core/gpu_request.h"
#include "os/process.h"

namespace gflow::server {
namespace {

constexpr double kGbPerMib = 1.0 / 1024;

/// Whole MiB, rounded up, as requests have it.
Memory memory_of(double gb) {
  return Memory::mib(static_cast<std::int64_t>(std::ceil(gb / kGbPerMib)));
}

bool is_any(std::string_view gpu_type) {
  const std::string type = to_lower(trim(gpu_type));
  return type.empty() || type == "any";
}

/// Whether it has what stands for `gpus`, too.
bool says_more(const api::GpuNeed& need) {
  const api::GpuNeed usual;
  return need.gpu_count != usual.gpu_count || !is_any(need.gpu_type) ||
         need.memory_gb != usual.memory_gb || need.compute_ratio != usual.compute_ratio;
}

/// Whether that is what is told of an allocation. What is not said is as it is.
bool is_told(const api::GpuNeed& need, const api::GpuConfig& told) {
  const api::GpuNeed usual;
  return need.gpu_count == told.gpu_count &&
         (is_any(need.gpu_type) || to_lower(need.gpu_type) == to_lower(told.gpu_type)) &&
         (need.memory_gb == usual.memory_gb || need.memory_gb == told.memory_gb) &&
         (need.compute_ratio == usual.compute_ratio || need.compute_ratio == told.compute_ratio);
}

/// Whether it is what a device that reports this amount is sold with: a driver and error correction
/// take up to a seventh of it.
bool is_sold_with(std::string_view model, Memory reported, Memory nominal) {
  constexpr std::int64_t kOf = 100;
  constexpr std::int64_t kLeast = 85;
  return reported < nominal && reported.bytes * kOf >= nominal.bytes * kLeast &&
         catalogue::memory_of(model) == nominal;
}

/// A process of the caller's; none for 0. Errors: Permission for one of another user, NotFound.
Result<std::optional<ProcessId>> process_of(int pid, const Principal& caller) {
  if (pid == 0) return std::nullopt;
  const auto facts = GF_TRY(os::find_process(pid));
  const auto owner = os::process_owner(pid);
  if (!facts || !owner || !os::is_process(pid)) {
    return fail(Code::NotFound, tr_format("there is no process {}", pid));
  }
  if (caller.uid != *owner) {
    return fail(Code::Permission, tr_format("process {} is not yours", pid));
  }
  return ProcessId{pid, facts->start_time};
}

/// The field is at fault where the process is not there or is not theirs, not where nothing could
/// be found out about it.
std::unexpected<api::Refusal> refused(std::string pointer, Error why) {
  if (why.code != Code::NotFound && why.code != Code::Permission) {
    return std::unexpected(api::Refusal(std::move(why)));
  }
  return api::refuse(std::move(pointer), why);
}

}  // namespace

Memory memory_wanted(const gflow::Request& request, double gb, const engine::State& state) {
  const Memory wanted = memory_of(gb);
  std::optional<Memory> all;
  for (const auto& [name, node] : state.nodes()) {
    for (const Device& device : node.machine.devices) {
      if (!device.memory_total) continue;
      const std::string model =
          catalogue::device_model(device.vendor, device.model, device.memory_total);
      const bool is_named = std::ranges::any_of(
          request.models, [&](const auto& one) { return catalogue::answers(one, model); });
      if (!is_named || !is_sold_with(model, *device.memory_total, wanted)) continue;
      all = std::min(all.value_or(*device.memory_total), *device.memory_total);
    }
  }
  return all.value_or(wanted);
}

Result<void> read_gpu_type(std::string_view text, gflow::Request& into) {
  if (is_any(text)) return normalise(into);
  const std::string_view type = trim(text);
  if (type.contains(',')) {
    return fail(Code::Usage,
                tr_format("'{}' has a comma; models have '|' between them, as 'V100|A100'",
                          printable(type)));
  }
  if (const auto vendor = read_vendor(type)) {
    into.vendor = *vendor;
  } else {
    for (const std::string_view model : split(type, '|')) into.models.emplace_back(trim(model));
    GF_CHECK(read_models(into.models));
  }
  return normalise(into);
}

api::Asked<gflow::Request> request_of(const api::GpuNeed& need, const engine::State& state) {
  gflow::Request request;
  if (!need.gpus.empty()) {
    if (says_more(need)) {
      return api::refuse("/gpus",
                         tr("specifies the whole request: omit gpu_count, gpu_type, memory_gb and "
                            "compute_ratio, or use them instead of it"));
    }
    const auto gpus = parse_gpu_request(need.gpus);
    if (!gpus) return api::refuse("/gpus", gpus.error());
    apply(*gpus, request);
    return request;
  }
  if (need.memory_gb > 0 && need.memory_gb < kGbPerMib) {
    return api::refuse("/memory_gb",
                       tr_format("{} is less than 1 MiB, which is {}: ask for more, or for 0, "
                                 "which is any amount",
                                 need.memory_gb,
                                 kGbPerMib));
  }
  request.gpus = need.gpu_count;
  if (need.compute_ratio < 1) {
    const auto parts = std::llround(need.compute_ratio * Share::kWholeParts);
    request.share.parts = static_cast<int>(std::clamp<long long>(parts, 1, Share::kWholeParts));
    request.mode = request.share == Share::whole() ? GpuMode::Whole : GpuMode::Fraction;
  }
  if (const auto type = read_gpu_type(need.gpu_type, request); !type) {
    return api::refuse("/gpu_type", type.error());
  }
  request.gpu_memory = memory_wanted(request, need.memory_gb, state);
  return request;
}

api::Asked<HeldFor> held_for(const api::GpuNeed& need, const Principal& caller) {
  auto owner = process_of(need.pid, caller);
  if (!owner) return refused("/pid", std::move(owner).error());
  auto waiter = process_of(need.wait_pid, caller);
  if (!waiter) return refused("/wait_pid", std::move(waiter).error());
  return HeldFor{.owner = *owner, .waiter = *waiter};
}

api::Asked<void> check_is_of(const api::GpuNeed& need,
                             const Job& allocation,
                             const std::optional<api::GpuConfig>& told,
                             const engine::State& state) {
  if (need.wait || need.ttl_seconds != 0 || need.pid != 0 || need.wait_pid != 0) {
    return api::refuse("/allocation_id",
                       tr("names an existing allocation, which is not changed: omit wait, "
                          "ttl_seconds, pid and wait_pid"));
  }
  if (need.gpus.empty() && !says_more(need)) return {};
  const gflow::Request& has = allocation.spec.request;
  const auto wanted = request_of(need, state);
  if (!wanted) return std::unexpected(wanted.error());
  if (*wanted == has || (told && need.gpus.empty() && is_told(need, *told))) return {};
  return api::refuse(
      "/allocation_id",
      tr_format("allocation {} is {}, not {}: omit what it is, or allocate another one",
                allocation.id.value,
                gpu_request_text(has),
                gpu_request_text(*wanted)));
}

}  // namespace gflow::server
