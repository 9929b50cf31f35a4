// SPDX-License-Identifier: Apache-2.0
#include "api/documents.h"
#include "api/queue.h"
#include "api/start_fields.h"

namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<QueuedJob> = "QueuedJob";
template <class Io, Like<QueuedJob> T>
void fields(Io& io, T& job) {
  io.required("id", job.id);
  io.field("expected_start", job.expected_start);
}

template <class Io, Like<QueueView> T>
void fields(Io& io, T& queue) {
  io.required("jobs", queue.jobs);
}

void describe_queue(Schemas& schemas) { schemas.document<QueueView>("Queue", Form::Answer); }

std::string write(const QueueView& queue) { return Writer::document("Queue", queue); }

Result<QueueView> read_queue(std::string_view json) {
  return Reader::answer<QueueView>(json, "Queue");
}

}  // namespace gflow::api
