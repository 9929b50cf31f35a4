// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdint>

#include "api/documents.h"
#include "api/json.h"
#include "api/spec_fields.h"

namespace gflow::api {

template <class Io, Like<JobsRequest> T>
void fields(Io& io, T& request) {
  io.some("jobs", request.jobs, kMaxJobsChangedAtOnce);
  io.field("signal", request.signal, kSignalRange);
  io.field("at", request.at);
}

template <class Io, Like<UpdateRequest> T>
void fields(Io& io, T& request) {
  io.some("jobs", request.jobs, kMaxJobsChangedAtOnce);
  patch_fields(io, patch_of(request.changes));
}

template <class Io, Like<MoveRequest> T>
void fields(Io& io, T& request) {
  io.field("gpu", request.gpu, kDeviceRange);
  io.field("running_only", request.running_only);
}

namespace {

struct JobUpdate {
  JobChanges changes;
};
struct JobIds {
  std::vector<JobId> jobs;
};
struct Revision {
  std::uint64_t revision = 0;
};

/// A request with the jobs it is about in order, if they are some and not too many.
template <class Request>
Asked<Request> with_jobs(Asked<Request> request) {
  if (!request) return request;
  if (request->jobs.empty()) return refuse("/jobs", "must name at least one job");
  put_in_order(request->jobs);
  if (request->jobs.size() > kMaxJobsChangedAtOnce) {
    return refuse("/jobs",
                  fmt::format("names {} jobs; the maximum is {}: change them by several requests",
                              request->jobs.size(),
                              kMaxJobsChangedAtOnce));
  }
  return request;
}

}  // namespace

template <class Io, Like<JobUpdate> T>
void fields(Io& io, T& update) {
  patch_fields(io, patch_of(update.changes));
}

template <class Io, Like<JobIds> T>
void fields(Io& io, T& ids) {
  io.required("jobs", ids.jobs);
}

template <class Io, Like<Revision> T>
void fields(Io& io, T& changes) {
  io.required("revision", changes.revision);
}

std::string write(const JobsRequest& request) { return Writer::document("Jobs", request); }

Asked<JobsRequest> read_jobs_request(std::string_view json) {
  return with_jobs(Reader::request<JobsRequest>(json, "Jobs"));
}

std::string write(const UpdateRequest& request) { return Writer::document("Update", request); }

Asked<UpdateRequest> read_update_request(std::string_view json) {
  auto request = with_jobs(Reader::request<UpdateRequest>(json, "Update"));
  if (!request) return request;
  put_in_order(request->changes.edit().dependencies.jobs);
  return request;
}

void describe_requests(Schemas& schemas) {
  schemas.document<JobsRequest>("Jobs", Form::Request);
  schemas.document<UpdateRequest>("Update", Form::Request);
  schemas.document<JobUpdate>("JobUpdate", Form::Request);
  schemas.document<MoveRequest>("JobMove", Form::Request);
  schemas.document<JobIds>("JobIds", Form::Answer);
  schemas.document<Revision>("Changes", Form::Answer);
}

std::string write_job_update(const JobChanges& changes) {
  return Writer::document("JobUpdate", JobUpdate{changes});
}

Asked<JobChanges> read_job_update(std::string_view json) {
  auto update = Reader::request<JobUpdate>(json, "JobUpdate");
  if (!update) return std::unexpected(std::move(update).error());
  put_in_order(update->changes.edit().dependencies.jobs);
  return std::move(update->changes);
}

std::string write(const MoveRequest& request) { return Writer::document("JobMove", request); }

Asked<MoveRequest> read_move_request(std::string_view json) {
  return Reader::request<MoveRequest>(json, "JobMove");
}

std::string write_job_ids(const std::vector<JobId>& jobs) {
  return Writer::document("JobIds", JobIds{jobs});
}

Result<std::vector<JobId>> read_job_ids(std::string_view json) {
  return GF_TRY(Reader::answer<JobIds>(json, "JobIds")).jobs;
}

std::string write_revision(std::uint64_t revision) {
  return Writer::document("Changes", Revision{revision});
}

Result<std::uint64_t> read_revision(std::string_view json) {
  return GF_TRY(Reader::answer<Revision>(json, "Changes")).revision;
}

}  // namespace gflow::api
