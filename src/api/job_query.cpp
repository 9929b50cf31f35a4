// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdint>

#include "api/cursor.h"
#include "api/job_page.h"
#include "api/json.h"
#include "api/query.h"
#include "api/spec_fields.h"
#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow::api {
namespace {

constexpr Range kPage = {1, static_cast<std::int64_t>(kMaxJobsOnPage)};

Result<void> read_after(JobQuery& query, const QueryParameter& told, std::string_view value) {
  if (value.empty() || value.find_first_not_of("0123456789") == std::string_view::npos) {
    return detail::read_value(query.after, told, value);
  }
  query.cursor = value;
  GF_CHECK(read_cursor(value));
  return {};
}

Result<void> read_order(JobQuery& query, const QueryParameter& told, std::string_view value) {
  const auto order = parse_job_order(value);
  if (!order) return with_context(order.error(), told.name);
  query.order.key = order->key;
  query.order.descending = order->descending;
  return {};
}

Result<void> read_fields(JobQuery& query, const QueryParameter& told, std::string_view value) {
  GF_CHECK(detail::read_value(query.fields, told, value));
  return check_job_fields(query.fields);
}

Result<void> finish(JobQuery& query) {
  query.most = std::min(query.most, kMaxJobsOnPage);
  const bool is_by_id = query.order.key == JobKey::Id;
  if (is_by_id ? query.cursor.empty() : !query.after.is_set()) return {};
  return fail(Code::Usage,
              tr("after is of another order: take what the page before had as 'next', and begin "
                 "without it where the order changes"));
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

Result<JobQuery> read_query(std::string_view query) { return read_query_of<JobQuery>(query); }

template <>
QueryTable<JobQuery> query_table<JobQuery>() {
  using Many = QueryParameter::Many;
  static constexpr auto kRows = std::to_array<QueryRow<JobQuery>>({
      parameter<&JobQuery::statuses>({.name = "state",
                                      .help = tr_later("in any of these states"),
                                      .many = Many::Commas,
                                      .example = "Queued,Running,Finished"}),
      parameter<&JobQuery::users>(
          {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas}),
      parameter<&JobQuery::names>(
          {.name = "name",
           .help = tr_later("with any of these names; * and ? stand for others"),
           .many = Many::Repeated,
           .example = "train*"}),
      parameter<&JobQuery::project>({.name = "project", .help = tr_later("of this project")}),
      parameter<&JobQuery::group>({.name = "group", .help = tr_later("of this group")}),
      parameter<&JobQuery::jobs>(
          {.name = "job",
           .help = tr_later("of these numbers: 1,3,5-7"),
           .pattern = "^[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?(,[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?)*$",
           .example = "1-3"}),
      parameter<&JobQuery::submitted_since>({.name = "since",
                                             .help = tr_later("submitted at this time or later"),
                                             .example = "2026-01-01T00:00:00Z"}),
      {{.name = "after",
        .help = tr_later("what the page before had as next; in the order by id a number of a job"),
        .pattern = "^([0-9]{1,18}|c[A-Za-z0-9_-]*)$"},
       read_after},
      parameter<&JobQuery::most>(
          {.name = "limit", .help = tr_later("jobs on a page"), .range = kPage, .example = "50"}),
      {{.name = "sort",
        .help = tr_later("by this; with - before it backwards"),
        .pattern = "^-?(id|state|time|name|gpus|priority)$",
        .example = "id"},
       read_order},
      parameter<&JobQuery::order, &JobOrder::reversed>(
          {.name = "reverse", .help = tr_later("from the other end")}),
      {{.name = "fields",
        .help = tr_later("only these of each job, and its id: status,spec.name"),
        .many = Many::Commas,
        .example = "status,spec.name"},
       read_fields},
  });
  return {kRows, finish};
}

}  // namespace gflow::api
