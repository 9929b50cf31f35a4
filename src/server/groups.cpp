// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "api/cursor.h"
#include "api/group.h"
#include "base/text.h"
#include "base/translate.h"
#include "server/handlers.h"
#include "server/next_link.h"
#include "server/seen_jobs.h"

namespace gflow::server {
namespace {

/// Groups stand by name, then by owner.
using GroupPlace = std::pair<std::string, std::uint32_t>;

GroupPlace place_of(const JobSpec& spec) { return {spec.group, spec.user.uid}; }

/// Of the groups it is shown jobs of, the first so many behind a place, counted whole: one that is
/// let go of because enough stand before it never comes back.
class FirstGroups {
 public:
  FirstGroups(const JobSight& sight, std::optional<GroupPlace> after, std::size_t most)
      : sight_(sight), after_(std::move(after)), most_(most) {}

  void add(const engine::Glance& job) {
    if (job.spec->group.empty() || !sight_.names(job.spec->user)) return;
    GroupPlace place = place_of(*job.spec);
    if (after_ && place <= *after_) return;
    const bool is_full = groups_.size() > most_;  // one more tells that there are more
    if (is_full && std::prev(groups_.end())->first < place) return;
    const auto [at, is_new] = groups_.try_emplace(std::move(place));
    count(at->second, job, is_new);
    if (groups_.size() > most_ + 1) groups_.erase(std::prev(groups_.end()));
  }

  [[nodiscard]] api::GroupPage page() && {
    api::GroupPage page;
    for (auto& [place, group] : groups_) {
      if (page.groups.size() == most_) {
        const api::GroupView& last = page.groups.back();
        page.next = api::write_cursor(
            std::vector<std::string>{"groups", last.name, std::to_string(last.user.uid)});
        break;
      }
      page.groups.push_back(std::move(group));
    }
    return page;
  }

 private:
  static void count(api::GroupView& group, const engine::Glance& job, bool is_new) {
    if (is_new) {
      group.name = job.spec->group;
      group.user = job.spec->user;
      group.first_job = job.id;
    }
    group.first_job = std::min(group.first_job, job.id);
    group.last_job = std::max(group.last_job, job.id);
    group.max_concurrent = job.spec->max_concurrent;
    ++group.jobs;
    group.states.add(job.status);
  }

  JobSight sight_;
  std::optional<GroupPlace> after_;
  std::size_t most_;
  std::map<GroupPlace, api::GroupView> groups_;
};

/// Where the page before ended; none for the first.
Result<std::optional<GroupPlace>> read_after(const std::string& value) {
  if (value.empty()) return std::nullopt;
  const std::vector<std::string> parts = GF_TRY(api::read_cursor(value));
  const auto uid = parts.size() == 3 ? parse_number(parts[2]) : std::nullopt;
  if (uid && parts[0] == "groups") return GroupPlace{parts[1], static_cast<std::uint32_t>(*uid)};
  return fail(Code::Usage, tr("after is of another list; begin without it"));
}

/// Among the groups of that name the caller's own, or the only one. Errors: NotFound; Usage where
/// it has to be said whose.
Result<api::GroupView> only_one(std::vector<api::GroupView> groups, const Exchange& exchange) {
  const std::string shown = printable(exchange.segment.substr(0, 100));
  if (groups.empty()) return fail(Code::NotFound, tr_format("there is no group '{}'", shown));
  const auto own = std::ranges::find_if(groups, [&exchange](const api::GroupView& group) {
    return exchange.caller.uid == group.user.uid;
  });
  if (own != groups.end()) return std::move(*own);
  if (groups.size() == 1) return std::move(groups.front());
  return fail(Code::Usage,
              tr_format("several users have a group '{}'; say whose with user=", shown));
}

}  // namespace

void list_groups(Exchange exchange, GroupsQuery query) {
  auto after = read_after(query.after);
  if (!after) return exchange.respond(problem(after.error()));
  const auto first =
      std::make_shared<FirstGroups>(sight_of(exchange.caller), *std::move(after), query.most);
  see_jobs(
      std::move(exchange),
      std::move(query.jobs),
      [first, names = std::move(query.names)](const engine::Glance& job) {
        const auto is_named = [&job](const std::string& pattern) {
          return glob_match(pattern, job.spec->group);
        };
        if (names.empty() || std::ranges::any_of(names, is_named)) first->add(job);
      },
      [first](Exchange done) {
        api::GroupPage page = std::move(*first).page();
        const std::string next = page.next;
        Reply reply = json_reply_of(std::move(page));
        link_next(reply, done.request, next);
        done.respond(std::move(reply));
      });
}

void show_group(Exchange exchange, GroupQuery query) {
  JobQuery jobs{.users = std::move(query.users), .group = exchange.segment};
  const auto first =
      std::make_shared<FirstGroups>(sight_of(exchange.caller), std::nullopt, api::kMaxJobsOnPage);
  see_jobs(
      std::move(exchange),
      std::move(jobs),
      [first](const engine::Glance& job) { first->add(job); },
      [first](Exchange done) {
        auto group = only_one(std::move(*first).page().groups, done);
        done.respond(group ? json_reply_of(*std::move(group)) : problem(group.error()));
      });
}

}  // namespace gflow::server
