// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include <fmt/format.h>

#include "api/cursor.h"
#include "api/job_page.h"
#include "api/json.h"
#include "api/query.h"
#include "api/spec_fields.h"
#include "base/text.h"
#include "core/requests.h"

namespace gflow::api {
namespace {

Result<void> add_statuses(JobQuery& query, std::string_view text) {
  for (const std::string_view name : split(text, ',')) {
    query.statuses.insert(GF_TRY(parse_status(trim(name))));
  }
  return {};
}

void add_users(JobQuery& query, std::string_view text) {
  for (const std::string_view name : split(text, ',')) query.users.emplace_back(name);
}

Result<void> add_limit(JobQuery& query, const Parameter& parameter) {
  const std::uint64_t limit = GF_TRY(number_of(parameter));
  if (limit == 0 || limit > kMaxJobsOnPage) {
    return fail(Code::Usage, fmt::format("limit must be 1 to {}, not {}", kMaxJobsOnPage, limit));
  }
  query.most = limit;
  return {};
}

Result<void> add_order(JobQuery& query, std::string_view text) {
  const auto order = parse_job_order(text);
  if (!order) return with_context(order.error(), "sort");
  query.order.key = order->key;
  query.order.descending = order->descending;
  return {};
}

Result<void> add(JobQuery& query, const Parameter& parameter) {
  const auto& [name, value] = parameter;
  if (name == "state") {
    GF_CHECK(add_statuses(query, value));
  } else if (name == "user") {
    add_users(query, value);
  } else if (name == "name") {
    query.names.push_back(value);
  } else if (name == "project") {
    query.project = value;
  } else if (name == "group") {
    query.group = value;
  } else if (name == "job") {
    query.jobs = GF_TRY(parse_job_ids(value));
    put_in_order(query.jobs);
  } else if (name == "since") {
    query.submitted_since = GF_TRY(parse_rfc3339(value));
  } else if (name == "after") {
    if (value.empty() || value.find_first_not_of("0123456789") == std::string::npos) {
      query.after = JobId(GF_TRY(number_of(parameter)));
    } else {
      query.cursor = value;
      GF_CHECK(read_cursor(value));
    }
  } else if (name == "limit") {
    GF_CHECK(add_limit(query, parameter));
  } else if (name == "sort") {
    GF_CHECK(add_order(query, value));
  } else if (name == "fields") {
    for (const std::string_view field : split(value, ',')) query.fields.emplace_back(trim(field));
    GF_CHECK(check_job_fields(query.fields));
  } else if (name == "reverse") {
    if (value != "true" && value != "false") {
      return fail(Code::Usage, fmt::format("reverse is true or false, not '{}'", printable(value)));
    }
    query.order.reversed = value == "true";
  } else {
    return unknown_parameter(name,
                             {"state",
                              "user",
                              "name",
                              "project",
                              "group",
                              "job",
                              "since",
                              "after",
                              "limit",
                              "sort",
                              "reverse",
                              "fields"});
  }
  return {};
}

/// "1,3,5-7": runs keep the list of a whole array short.
std::string id_list(const std::vector<JobId>& jobs) {
  std::vector<std::uint64_t> numbers;
  for (const JobId id : jobs) numbers.push_back(id.value);
  return ranges_text(std::span<const std::uint64_t>(numbers));
}

}  // namespace

std::string write_query(const JobQuery& query) {
  std::string text;
  std::string statuses;
  for (const Status status : query.statuses.list()) {
    if (!statuses.empty()) statuses += ',';
    statuses += status_name(status);
  }
  if (!statuses.empty()) append_parameter(text, "state", statuses);
  if (!query.users.empty()) append_parameter(text, "user", join(query.users, ","));
  for (const std::string& name : query.names) append_parameter(text, "name", name);
  if (!query.project.empty()) append_parameter(text, "project", query.project);
  if (!query.group.empty()) append_parameter(text, "group", query.group);
  if (!query.jobs.empty()) append_parameter(text, "job", id_list(query.jobs));
  if (query.submitted_since) append_parameter(text, "since", rfc3339(*query.submitted_since));
  if (query.after.is_set()) append_parameter(text, "after", std::to_string(query.after.value));
  if (!query.cursor.empty()) append_parameter(text, "after", query.cursor);
  if (query.most < kMaxJobsOnPage) append_parameter(text, "limit", std::to_string(query.most));
  const JobOrder by_id{.reversed = query.order.reversed};
  if (query.order != by_id) append_parameter(text, "sort", job_order_text(query.order));
  if (query.order.reversed) append_parameter(text, "reverse", "true");
  if (!query.fields.empty()) append_parameter(text, "fields", join(query.fields, ","));
  return text;
}

Result<JobQuery> read_query(std::string_view query) {
  JobQuery read;
  read.most = kMaxJobsOnPage;
  for (const Parameter& parameter : GF_TRY(read_parameters(query, {"state", "user", "name"}))) {
    GF_CHECK(add(read, parameter));
  }
  const bool is_by_id = read.order.key == JobKey::Id;
  if (is_by_id ? !read.cursor.empty() : read.after.is_set()) {
    return fail(Code::Usage,
                "after is of another order: take what the page before had as 'next', and begin "
                "without it where the order changes");
  }
  return read;
}

}  // namespace gflow::api
