// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/schema_writer.h"
#include "api/statistics.h"
#include "core/job_sight.h"

namespace gflow::api {
template <>
inline constexpr std::string_view kSchemaName<TimesView> = "TimesView";
template <class Io, Like<TimesView> T>
void fields(Io& io, T& times) {
  io.field("count", times.count);
  io.field("mean", times.mean);
  io.field("p50", times.median);
  io.field("p90", times.p90);
  io.field("p99", times.p99);
  io.field("max", times.most);
}

template <>
inline constexpr std::string_view kSchemaName<UsageView> = "UsageView";
template <class Io, Like<UsageView> T>
void fields(Io& io, T& usage) {
  io.field("name", usage.name);
  io.field("states", usage.states);
  io.field("wait_seconds", usage.waits);
  io.field("run_time_seconds", usage.run_times);
  io.field("gpu_seconds", usage.gpu_seconds);
  io.field("cpu_seconds", usage.cpu_seconds);
  io.field("gpus_held", usage.gpus_held);
}

template <class Io, Like<StatisticsView> T>
void fields(Io& io, T& statistics) {
  io.field("time", statistics.at);
  io.field("since", statistics.since);
  io.field("until", statistics.until);
  io.field("known_since", statistics.known_since);
  io.choice("others_jobs", statistics.others_jobs, kOthersJobsNames);
  io.field("total", statistics.total);
  io.choice("by", statistics.by, kUsageByNames);
  io.field("parts", statistics.parts);
}

void describe_statistics(Schemas& schemas) {
  schemas.document<StatisticsView>("Statistics", Form::Answer);
}

std::string write(const StatisticsView& statistics) {
  return Writer::document("Statistics", statistics);
}

Result<StatisticsView> read_statistics(std::string_view json) {
  return Reader::answer<StatisticsView>(json, "Statistics");
}

}  // namespace gflow::api
