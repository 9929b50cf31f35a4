// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "core/job.h"

/// Field lists of what a job consists of, for requests and answers alike.
namespace gflow::api {

constexpr Range kGpuRange = {0, 1024};
constexpr Range kCpuRange = {0, 1'000'000};
constexpr Range kMemoryRange = {0, std::int64_t{1} << 62};
constexpr Range kPriorityRange = {0, kMaxPriority};
constexpr Range kTimeLimitRange = {1, std::int64_t{10} * 365 * 86400};
constexpr Range kGraceRange = {0, 86400};
constexpr Range kRetryRange = {0, 1'000'000};
constexpr Range kShareRange = {1, Share::kWholeParts};
constexpr Range kNodeRange = {1, 100'000};
constexpr Range kSignalRange = {0, 64};

template <class Io, Like<User> T>
void fields(Io& io, T& user) {
  io.field("uid", user.uid);
  io.field("name", user.name);
}

template <class Io, Like<Label> T>
void fields(Io& io, T& label) {
  io.field("key", label.key);
  io.field("value", label.value);
}

template <class Io, Like<Request> T>
void fields(Io& io, T& request) {
  io.field("gpus", request.gpus, kGpuRange);
  io.field("gpu_share_parts", request.share.parts, kShareRange);
  io.field("gpu_memory_bytes", request.gpu_memory, kMemoryRange);
  io.field("gpu_mode", request.mode);
  io.field("gpu_vendor", request.vendor);
  io.field("gpu_models", request.models);
  io.field("see_all", request.see_all);
  io.field("cpus", request.cpus, kCpuRange);
  io.field("memory_bytes", request.memory, kMemoryRange);
  io.field("nodes", request.nodes, kNodeRange);
  io.field("selector", request.selector);
}

template <class Io, Like<Dependencies> T>
void fields(Io& io, T& dependencies) {
  io.field("jobs", dependencies.jobs);
  io.field("mode", dependencies.mode);
  io.field("auto_cancel", dependencies.auto_cancel);
}

template <class Io, Like<Allocation> T>
void fields(Io& io, T& allocation) {
  io.field("node", allocation.node);
  io.field("gpus", allocation.gpus, kGpuRange);
  io.field("cpus", allocation.cpus, kCpuRange);
}

/// Without the user: who submits is what the socket says.
template <class Io, Like<JobSpec> T>
void fields(Io& io, T& spec) {
  io.field("name", spec.name);
  io.field("project", spec.project);
  io.field("request", spec.request);
  io.field("priority", spec.priority, kPriorityRange);
  io.field("time_limit_seconds", spec.time_limit, kTimeLimitRange);
  io.field("grace_seconds", spec.grace, kGraceRange);
  io.field("begin", spec.begin);
  io.field("dependencies", spec.dependencies);
  io.field("hold", spec.hold);
  io.field("requeue", spec.requeue);
  io.field("max_retries", spec.max_retries, kRetryRange);
  io.field("preemption", spec.preemption);
  io.field("preempt_signal", spec.preempt_signal, kSignalRange);
  io.field("group", spec.group);
  io.field("max_concurrent", spec.max_concurrent, kRetryRange);
  io.field("command", spec.command);
  io.field("work_dir", spec.work_dir);
}

/// Sorted and each once, as the engine wants lists of jobs.
void put_in_order(std::vector<JobId>& jobs);

}  // namespace gflow::api
