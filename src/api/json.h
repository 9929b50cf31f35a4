// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/query_table.h"
#include "api/refusal.h"
#include "api/types.h"
#include "base/result.h"
#include "core/job_query.h"

/// JSON text of every value that goes over the wire, and back. Documents carry
/// "apiVersion": "gflow/v1" and a "kind". Readers: Code::Usage names the field by JSON pointer, of
/// a request every one that is wrong. Unknown fields are refused in requests and ignored in
/// answers. Bytes that are not UTF-8 (in argv, scripts, environment) travel as {"base64": "..."}
/// in place of a string.
namespace gflow::api {

constexpr std::string_view kApiVersion = "gflow/v1";

[[nodiscard]] std::string write(const JobView& job);
[[nodiscard]] Result<JobView> read_job(std::string_view json);
[[nodiscard]] std::string write(const JobPage& page);
[[nodiscard]] Result<JobPage> read_job_page(std::string_view json);
[[nodiscard]] std::string write(const MachineView& machine);
[[nodiscard]] Result<MachineView> read_machine(std::string_view json);
[[nodiscard]] std::string write(const VersionView& version);
[[nodiscard]] std::string write(const DaemonView& daemon);
[[nodiscard]] Result<DaemonView> read_daemon(std::string_view json);
[[nodiscard]] std::string write(const SubmitRequest& request);
[[nodiscard]] Asked<SubmitRequest> read_submit_request(std::string_view json);
[[nodiscard]] std::string write(const SubmitAnswer& answer);
[[nodiscard]] Result<SubmitAnswer> read_submit_answer(std::string_view json);
[[nodiscard]] std::string write(const JobsRequest& request);
[[nodiscard]] Asked<JobsRequest> read_jobs_request(std::string_view json);
[[nodiscard]] std::string write(const UpdateRequest& request);
[[nodiscard]] Asked<UpdateRequest> read_update_request(std::string_view json);
/// What is to be changed of one job: the body of PATCH /api/v1/jobs/{id}.
[[nodiscard]] std::string write_job_update(const JobChanges& changes);
[[nodiscard]] std::string write(const MoveRequest& request);
[[nodiscard]] Asked<MoveRequest> read_move_request(std::string_view json);
[[nodiscard]] Asked<JobChanges> read_job_update(std::string_view json);
/// {"kind": "JobIds", "jobs": [..]}: the answer to cancel, hold, release, suspend, resume, update.
[[nodiscard]] std::string write_job_ids(const std::vector<JobId>& jobs);
[[nodiscard]] Result<std::vector<JobId>> read_job_ids(std::string_view json);
/// {"kind": "Changes", "revision": N}: the answer to GET /api/v1/changes.
[[nodiscard]] std::string write_revision(std::uint64_t revision);
[[nodiscard]] Result<std::uint64_t> read_revision(std::string_view json);

/// RFC 9457 problem document of an error.
[[nodiscard]] std::string write_problem(const Error& error);
/// The same with an HTTP status that says more than the code: 405, 413, 431.
[[nodiscard]] std::string write_problem(const Error& error, int http_status);
/// The same with the fields of the body that are wrong.
[[nodiscard]] std::string write_problem(const Refusal& refusal);
/// Of events that are not kept any more; `after` is the latest, behind which a listener may begin.
constexpr int kEventsGone = 410;
[[nodiscard]] std::string write_events_gone(const Error& error, std::uint64_t after);
/// The document with the id of the request it answers.
[[nodiscard]] std::string with_instance(std::string problem, std::string_view request_id);
[[nodiscard]] Error read_problem(int http_status, std::string_view body);
/// "Not Found"; what is said of a status by RFC 9110.
[[nodiscard]] std::string_view status_title(int status);
/// Usage 400, Permission 403, NotFound 404, WrongState 409, Infeasible 422, Exhausted 507, ...
[[nodiscard]] int http_status(Code code);

/// "state=Running,Queued&user=alice&after=100&limit=50" and back. Errors: Usage.
/// The query of GET /api/v1/jobs. At most kMaxJobsOnPage in one answer.
inline constexpr std::size_t kMaxJobsOnPage = 1000;
[[nodiscard]] std::string write_query(const JobQuery& query);
[[nodiscard]] Result<JobQuery> read_query(std::string_view query);
template <>
QueryTable<JobQuery> query_table<JobQuery>();

}  // namespace gflow::api
