// SPDX-License-Identifier: Apache-2.0
#include "api/placement_view.h"

#include "api/documents.h"
#include "api/job_fields.h"
#include "api/spec_fields.h"
#include "api/start_fields.h"
#include "core/gpu_request.h"

namespace gflow::api {

template <class Io, Like<PlaceRequest> T>
void fields(Io& io, T& request) {
  io.required("request", request.request);
  io.field("name", request.name);
  io.field("priority", request.priority, Range{0, kMaxPriority});
  io.field("time_limit_seconds", request.time_limit, kTimeLimitRange);
  io.field("hold", request.hold);
  io.field("begin", request.begin);
  io.field("dependencies", request.dependencies);
  io.field("group", request.group);
  io.field("max_concurrent", request.max_concurrent, kCountRange);
  io.field("most", request.most, Range{1, 1000});
  io.field("jobs", request.jobs, Range{1, kMaxPlaceJobs});
}

template <>
inline constexpr std::string_view kSchemaName<ScoreTerm> = "ScoreTerm";
template <class Io, Like<ScoreTerm> T>
void fields(Io& io, T& term) {
  io.field("name", term.name);
  io.field("weight", term.weight);
  io.field("value", term.value);
}

template <>
inline constexpr std::string_view kSchemaName<GpuSet> = "GpuSet";
template <class Io, Like<GpuSet> T>
void fields(Io& io, T& set) {
  io.field("gpu_indices", set.gpus);
  io.known_amount("links_percent", set.links_percent);
  io.field("because", set.because);
}

template <>
inline constexpr std::string_view kSchemaName<RankedNode> = "RankedNode";
template <class Io, Like<RankedNode> T>
void fields(Io& io, T& ranked) {
  io.field("node", ranked.node);
  fields(io, ranked.best);
  io.field("score", ranked.score);
  io.field("terms", ranked.terms);
  io.field("others", ranked.others);
}

template <>
inline constexpr std::string_view kSchemaName<StartPlace> = "StartPlace";
template <class Io, Like<StartPlace> T>
void fields(Io& io, T& place) {
  io.field("node", place.node);
  io.field("gpu_indices", place.gpus);
}

template <>
inline constexpr std::string_view kSchemaName<JobStart> = "JobStart";
template <class Io, Like<JobStart> T>
void fields(Io& io, T& start) {
  io.field("places", start.places);
}

template <class Io, Like<PlacementView> T>
void fields(Io& io, T& view) {
  io.field("request", view.request);
  io.field("words", view.words);
  io.field("policy", view.policy);
  io.field("nodes", view.nodes);
  io.field("fits", view.fits);
  io.field("ranked", view.ranked);
  io.field("starts", view.starts);
  io.field("limit", view.limit);
  io.field("blockers", view.blockers);
  io.field("cancelled", view.cancelled);
  io.field("expected_start", view.expected_start);
  io.field("jobs_ahead", view.jobs_ahead);
}

void describe_placement(Schemas& schemas) {
  schemas.document<PlaceRequest>("Place", Form::Request);
  schemas.document<PlacementView>("Placement", Form::Answer);
}

std::string write(const PlaceRequest& request) { return Writer::document("Place", request); }

Asked<PlaceRequest> read_place_request(std::string_view json) {
  auto request = Reader::request<PlaceRequest>(json, "Place");
  if (!request) return request;
  if (const auto normal = normalise(request->request); !normal) {
    return refuse("/request", normal.error());
  }
  put_in_order(request->dependencies.jobs);
  return request;
}

std::string write(const PlacementView& view) { return Writer::document("Placement", view); }

Result<PlacementView> read_placement(std::string_view json) {
  return Reader::answer<PlacementView>(json, "Placement");
}

}  // namespace gflow::api
