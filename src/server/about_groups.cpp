// SPDX-License-Identifier: Apache-2.0
#include "api/statistics.h"
#include "base/translate.h"
#include "core/status.h"
#include "server/about.h"
#include "server/about_kinds.h"
#include "server/queries.h"

namespace gflow::server::about {
constexpr api::Operation kListGroups = {
    .id = "list_groups",
    .tag = "jobs",
    .summary = tr_later("Groups of jobs, and the states of these"),
    .description = tr_later("By name, then by owner. There are more as long as next is not null: "
                            "ask again with after= it. Only jobs that match are counted."),
    .is_paged = true,
    .is_shared = true,
    .answers = {{{200, "GroupPage"}}},
};

constexpr api::Operation kShowGroup = shows_one({
    .id = "show_group",
    .tag = "jobs",
    .summary = tr_later("Show a group of jobs"),
    .description = tr_later("Yours, or the only one of that name."),
    .segment = tr_later("name of the group"),
    .segment_example = "sweep",
    .answers = {{{200, "Group"}}},
});

constexpr api::Operation kShowStatistics = {
    .id = "show_statistics",
    .tag = "jobs",
    .summary = tr_later("How long jobs waited and ran, and what they held"),
    .description = tr_later("Of jobs that ended in a time, as far as they are still known, and how "
                            "many wait and run now."),
    .is_shared = true,
    .answers = {{{200, "Statistics"}}},
};

}  // namespace gflow::server::about

namespace gflow::api {

namespace {

Result<void> finish(server::StatisticsQuery& query) {
  const auto& [since, until, by] = query.wish;
  if (!since || !until || *until > *since) return {};
  return fail(Code::Usage, tr("until is not later than since"));
}

constexpr Range kGroupsOnPage = {1, static_cast<std::int64_t>(kMaxJobsOnPage)};

}  // namespace

template <>
QueryTable<server::GroupsQuery> query_table<server::GroupsQuery>() {
  using Query = server::GroupsQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::jobs, &JobQuery::statuses>({.name = "state",
                                                    .help = tr_later("in any of these states"),
                                                    .many = QueryParameter::Many::Commas}),
      parameter<&Query::jobs, &JobQuery::users>({.name = "user",
                                                 .help = tr_later("of any of these users"),
                                                 .many = QueryParameter::Many::Commas}),
      parameter<&Query::names>(
          {.name = "name",
           .help = tr_later("with any of these names; * and ? stand for others"),
           .many = QueryParameter::Many::Repeated,
           .example = "sweep*"}),
      parameter<&Query::after>(
          {.name = "after", .help = tr_later("what the page before had as next")}),
      parameter<&Query::most>({.name = "limit",
                               .help = tr_later("groups on a page"),
                               .range = kGroupsOnPage,
                               .example = "50"}),
  });
  return {kRows};
}

template <>
QueryTable<server::GroupQuery> query_table<server::GroupQuery>() {
  using Query = server::GroupQuery;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::users>(
          {.name = "user", .help = tr_later("whose it is"), .many = QueryParameter::Many::Commas}),
  });
  return {kRows};
}

template <>
QueryTable<server::StatisticsQuery> query_table<server::StatisticsQuery>() {
  using Query = server::StatisticsQuery;
  using Wish = server::StatisticsWish;
  static constexpr auto kRows = std::to_array<QueryRow<Query>>({
      parameter<&Query::wish, &Wish::since>({.name = "since",
                                             .help = tr_later("ended at this time or later"),
                                             .example = "2026-01-01T00:00:00Z"}),
      parameter<&Query::wish, &Wish::until>(
          {.name = "until", .help = tr_later("ended before this time")}),
      parameter<&Query::jobs, &JobQuery::users>({.name = "user",
                                                 .help = tr_later("of any of these users"),
                                                 .many = QueryParameter::Many::Commas}),
      parameter<&Query::jobs, &JobQuery::project>(
          {.name = "project", .help = tr_later("of this project")}),
      parameter<&Query::jobs, &JobQuery::group>(
          {.name = "group", .help = tr_later("of this group")}),
      parameter<&Query::wish, &Wish::by>({.name = "by",
                                          .help = tr_later("also of each user or project"),
                                          .words = kUsageByNames,
                                          .example = "user"}),
  });
  return {kRows, finish};
}

}  // namespace gflow::api
