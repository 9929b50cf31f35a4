// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "api/json.h"
#include "base/translate.h"
#include "core/status.h"
#include "server/about.h"

namespace gflow::server::about {
namespace {

using api::QueryParameter;
using enum QueryParameter::Type;
using Many = QueryParameter::Many;

constexpr auto kNamesOfStates = [] {
  std::array<std::string_view, kStatuses.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kStatuses[i].name;
  return names;
}();
constexpr std::array<std::string_view, 3> kParts = {"none", "user", "project"};
constexpr Range kGroupsOnPage = {1, static_cast<std::int64_t>(api::kMaxJobsOnPage)};

}  // namespace

constexpr api::Operation kListGroups = {
    .id = "list_groups",
    .tag = "jobs",
    .summary = tr_later("Groups of jobs, and the states of these"),
    .description = tr_later("By name, then by owner. There are more as long as next is not null: "
                            "ask again with after= it. Only jobs that match are counted."),
    .query = {QueryParameter{.name = "state",
                             .help = tr_later("in any of these states"),
                             .words = kNamesOfStates,
                             .many = Many::Commas},
              {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas},
              {.name = "name",
               .help = tr_later("with any of these names; * and ? stand for others"),
               .many = Many::Repeated,
               .example = "sweep*"},
              {.name = "after", .help = tr_later("what the page before had as next")},
              {.name = "limit",
               .help = tr_later("groups on a page"),
               .type = Number,
               .range = kGroupsOnPage,
               .example = "50"}},
    .answers = {{{200, "GroupPage"}}},
};

constexpr api::Operation kShowGroup = {
    .id = "show_group",
    .tag = "jobs",
    .summary = tr_later("Show a group of jobs"),
    .description = tr_later("Yours, or the only one of that name."),
    .query = {QueryParameter{.name = "user", .help = tr_later("whose it is")}},
    .segment = tr_later("name of the group"),
    .answers = {{{200, "Group"}}},
    .errors = {404},
};

constexpr api::Operation kShowStatistics = {
    .id = "show_statistics",
    .tag = "jobs",
    .summary = tr_later("How long jobs waited and ran, and what they held"),
    .description = tr_later("Of jobs that ended in a time, as far as they are still known, and how "
                            "many wait and run now."),
    .query = {QueryParameter{.name = "since",
                             .help = tr_later("ended at this time or later"),
                             .type = Time,
                             .example = "2026-01-01T00:00:00Z"},
              {.name = "until", .help = tr_later("ended before this time"), .type = Time},
              {.name = "user", .help = tr_later("of any of these users"), .many = Many::Commas},
              {.name = "project", .help = tr_later("of this project")},
              {.name = "group", .help = tr_later("of this group")},
              {.name = "by",
               .help = tr_later("also of each user or project"),
               .words = kParts,
               .example = "user"}},
    .answers = {{{200, "Statistics"}}},
};

}  // namespace gflow::server::about
