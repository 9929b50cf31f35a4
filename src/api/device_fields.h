// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "api/json_reader.h"
#include "api/json_writer.h"
#include "api/spec_fields.h"
#include "api/types.h"
#include "core/machine_description.h"

/// Field lists of devices and who is on them.
namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<DeviceProcess> = "DeviceProcess";
template <>
inline constexpr std::string_view kSchemaName<MigDevice> = "MigDevice";
template <>
inline constexpr std::string_view kSchemaName<Device> = "Device";
template <>
inline constexpr std::string_view kSchemaName<Drain> = "Drain";

template <>
inline constexpr std::string_view kSchemaName<TimeSliceShare> = "TimeSliceShare";
template <class Io, Like<TimeSliceShare> T>
void fields(Io& io, T& share) {
  io.field("job", share.job);
  io.field("time_parts", share.time.parts);
}

template <>
inline constexpr std::string_view kSchemaName<DeviceView> = "DeviceView";
template <class Io, Like<DeviceView> T>
void fields(Io& io, T& view) {
  fields(io, view.device);
  io.derived("available", view.available());
  io.field("unavailable_because", view.bar);
  io.field("jobs", view.jobs);
  io.field("other_jobs", view.other_jobs);
  io.field("drained", view.drained);
  io.field("drained_reason", view.drained_reason);
  io.field("gpu_mode", view.mode);
  io.field("time_slices", view.time_slices);
  io.field("share_free_parts", view.share_free.parts);
  io.field("memory_free_bytes", view.memory_free);
  io.field("model_short", view.model_short);
  io.field("foreign", view.foreign);
}

}  // namespace gflow::api
