// SPDX-License-Identifier: Apache-2.0
#include "api/defrag.h"
#include "api/documents.h"
#include "api/spec_fields.h"

namespace gflow::api {

template <>
inline constexpr std::string_view kSchemaName<DefragMove> = "DefragMove";
template <class Io, Like<DefragMove> T>
void fields(Io& io, T& move) {
  io.required("job", move.job);
  io.field("source", move.from);
  io.field("target", move.to);
  io.field("lost_seconds", move.lost_time);
}

template <>
inline constexpr std::string_view kSchemaName<DefragStart> = "DefragStart";
template <class Io, Like<DefragStart> T>
void fields(Io& io, T& start) {
  io.required("job", start.job);
  io.field("target", start.to);
}

template <>
inline constexpr std::string_view kSchemaName<DefragPlan> = "DefragPlan";
template <class Io, Like<DefragPlan> T>
void fields(Io& io, T& plan) {
  io.required("id", plan.job);
  io.required("outcome", plan.outcome);
  io.field("moves", plan.moves);
  io.field("other_moves", plan.other_moves, kCountRange);
  io.field("target", plan.to);
  io.field("together", plan.together);
  io.field("is_behind", plan.is_behind);
  io.field("behind", plan.behind);
}

template <class Io, Like<DefragView> T>
void fields(Io& io, T& view) {
  io.required("jobs", view.jobs);
}

template <class Io, Like<DefragRequest> T>
void fields(Io& io, T& request) {
  io.required("id", request.job);
  io.required("moves", request.moves);
}

void describe_defrag(Schemas& schemas) {
  schemas.document<DefragView>("Defrag", Form::Answer);
  schemas.document<DefragRequest>("DefragRequest", Form::Request);
}

std::string write(const DefragRequest& request) {
  return Writer::document("DefragRequest", request);
}

Asked<DefragRequest> read_defrag_request(std::string_view json) {
  return Reader::request<DefragRequest>(json, "DefragRequest");
}

std::string write(const DefragView& view) { return Writer::document("Defrag", view); }

Result<DefragView> read_defrag(std::string_view json) {
  return Reader::answer<DefragView>(json, "Defrag");
}

}  // namespace gflow::api
