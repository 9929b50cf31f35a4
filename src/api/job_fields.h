// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/device_fields.h"
#include "api/spec_fields.h"
#include "api/types.h"

/// Field lists of a job as it is shown.
namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<blocker::Holder> = "Holder";
template <class Io, Like<blocker::Holder> T>
void fields(Io& io, T& holder) {
  io.required("job", holder.job);
  io.field("user", holder.user);
  io.field("gpus", holder.gpus);
  io.field("ends", holder.ends);
}

template <>
inline constexpr std::string_view kSchemaName<blocker::Unusable> = "Unusable";
template <class Io, Like<blocker::Unusable> T>
void fields(Io& io, T& unusable) {
  io.field("gpu", unusable.gpu);
  io.field("trouble", unusable.trouble);
  io.field("drained", unusable.drained);
  io.field("drained_reason", unusable.drained_reason);
  io.field("processes", unusable.processes);
}

template <>
inline constexpr std::string_view kSchemaName<BlockerView> = "BlockerView";
template <class Io, Like<BlockerView> T>
void fields(Io& io, T& view) {
  io.field("kind", view.kind);
  io.field("code", view.code);
  io.field("text", view.text);
  io.field("need", view.need);
  io.field("available", view.available);
  io.field("gpu_kind", view.gpu_kind);
  io.field("holders", view.holders);
  io.field("unusable", view.unusable);
  io.field("jobs", view.jobs);
  io.field("mode", view.mode);
  io.field("never", view.never);
  io.field("end", view.end);
  io.field("at", view.at);
}

template <>
inline constexpr std::string_view kSchemaName<GpuMemoryUse> = "GpuMemoryUse";
template <class Io, Like<GpuMemoryUse> T>
void fields(Io& io, T& use) {
  io.field("node", use.node);
  io.field("gpu", use.gpu);
  io.field("used_bytes", use.used);
  io.field("reserved_bytes", use.reserved);
}

template <>
inline constexpr std::string_view kSchemaName<GpuLimits> = "GpuLimits";
template <class Io, Like<GpuLimits> T>
void fields(Io& io, T& limits) {
  io.field("memory", limits.memory);
  io.field("compute", limits.compute);
}

template <>
inline constexpr std::string_view kSchemaName<ParkedMemory> = "ParkedMemory";
template <class Io, Like<ParkedMemory> T>
void fields(Io& io, T& parked) {
  io.field("state", parked.how);
  io.field("bytes", parked.memory);
  io.field("refused", parked.refused);
}

template <>
inline constexpr std::string_view kSchemaName<MoveView> = "JobMoving";
template <class Io, Like<MoveView> T>
void fields(Io& io, T& move) {
  io.required("source", move.source);
  io.required("target", move.target);
}

template <>
inline constexpr std::string_view kSchemaName<JobView> = "JobView";
template <class Io, Like<JobView> T>
void fields(Io& io, T& job) {
  io.required("id", job.id);
  io.field("user", job.spec.user);
  io.field("status", job.status);
  io.derived("status_code", status_code(job.status));
  io.field("reason", job.reason);
  io.field("submitted", job.submitted);
  io.field("started", job.started);
  io.field("ended", job.ended);
  io.field("run_time_seconds", job.run_time);
  io.field("node", job.node);
  io.field("gpu_indices", job.gpu_indices);
  io.field("cpu_indices", job.cpu_indices);
  io.field("peers", job.peers);
  io.field("node_list", job.node_list);
  io.known_text("placed_because", job.placed_because);
  io.field("gpu_memory", job.gpu_memory);
  io.field("gpu_limits", job.gpu_limits);
  io.field("gpu_isolation", job.gpu_isolation);
  io.field("parked", job.parked);
  io.field("lends", job.lends);
  io.field("move", job.move);
  io.field("move_refused", job.move_refused);
  io.field("gpu_idle_seconds", job.gpu_idle);
  io.field("attempt", job.attempt);
  io.field("retries", job.retries);
  io.known_amount("pid", job.pid);
  io.bytes("log_path", job.log_path);
  io.field("spec", job.spec);
  io.field("outcome", job.outcome);
  io.field("blockers", job.blockers);
}

}  // namespace gflow::api
