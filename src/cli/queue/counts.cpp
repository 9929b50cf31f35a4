// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/translate.h"

namespace gflow::cli {

namespace {

/// So many of them.
constexpr std::string_view part_text(Part part) {
  switch (part) {
    case Part::Running:
      return tr_later("{} running");
    case Part::Suspended:
      return tr_later("{} suspended");
    case Part::Waiting:
      return tr_later("{} waiting");
    case Part::Held:
      return tr_later("{} held");
    case Part::Ended:
      break;
  }
  return tr_later("{} ended");
}

constexpr std::array kParts = {
    Part::Running, Part::Suspended, Part::Waiting, Part::Held, Part::Ended};

std::string parts_text(const api::StatusCounts& counts) {
  std::vector<std::string> words;
  for (const Part part : kParts) {
    std::uint64_t count = 0;
    for (const StatusInfo& info : kStatuses) {
      if (part_of(info.status) == part) count += counts.of(info.status);
    }
    if (count > 0) words.push_back(tr_format(fmt::runtime(part_text(part)), count));
  }
  return join(words, tr(", "));
}

/// Only the states that are asked for.
api::StatusCounts chosen(api::StatusCounts counts, StatusSet statuses) {
  if (statuses.empty()) return counts;
  for (std::size_t i = 0; i < kStatuses.size(); ++i) {
    if (!statuses.contains(kStatuses.at(i).status)) counts.jobs.at(i) = 0;
  }
  return counts;
}

/// As the daemon counts them for GET /api/v1/statistics.
Result<JobCounts> counted_by_daemon(client::Client& daemon,
                                    const JobQuery& query,
                                    const std::string& user) {
  client::StatisticsWish wish;
  wish.users = query.users;
  wish.project = query.project;
  wish.group = query.group;
  wish.by = "user";
  const api::StatisticsView statistics = GF_TRY(daemon.statistics(wish));
  JobCounts counts{chosen(statistics.total.states, query.statuses), {}};
  const auto own = std::ranges::find(statistics.parts, user, &api::UsageView::name);
  if (own != statistics.parts.end()) counts.own = chosen(own->states, query.statuses);
  return counts;
}

}  // namespace

Part part_of(Status status) {
  if (is_ended(status)) return Part::Ended;
  if (status == Status::Hold) return Part::Held;
  if (is_pending(status)) return Part::Waiting;
  return status == Status::Suspended ? Part::Suspended : Part::Running;
}

void JobCounts::add(const api::JobView& job, const std::string& user) {
  all.add(job.status);
  if (job.spec.user.name == user) own.add(job.status);
}

std::uint64_t JobCounts::total() const {
  return std::accumulate(all.jobs.begin(), all.jobs.end(), std::uint64_t{0});
}

JobCounts counts_of(const api::JobPage& page, const std::string& user) {
  JobCounts counts;
  for (const api::JobView& job : page.jobs) counts.add(job, user);
  return counts;
}

Result<JobCounts> count_jobs(client::Client& daemon, JobQuery query, const std::string& user) {
  // Statistics know of no names, no single jobs and no times of submission.
  if (query.names.empty() && query.jobs.empty() && !query.submitted_since) {
    return counted_by_daemon(daemon, query, user);
  }
  query.order = {};
  query.fields = {"status", "user"};
  JobCounts counts;
  GF_CHECK(daemon.job_pages(std::move(query), JobQuery::kAll, [&](const api::JobPage& page) {
    for (const api::JobView& job : page.jobs) counts.add(job, user);
    return true;
  }));
  return counts;
}

std::string counts_text(const JobCounts& counts,
                        std::optional<std::size_t> listed,
                        std::size_t columns) {
  const std::string all = parts_text(counts.all);
  if (all.empty()) return tr("no jobs");
  const std::string own = parts_text(counts.own);
  std::vector<std::string> texts;  // the longest first
  if (!own.empty() && own != all) texts.push_back(tr_format("{} (yours: {})", all, own));
  texts.push_back(all);
  if (listed && *listed < counts.total()) {
    for (std::string& text : texts) {
      text = tr_format("{} of {} jobs listed; in all: {}", *listed, counts.total(), text);
    }
    texts.push_back(tr_format("{} of {} jobs listed", *listed, counts.total()));
  }
  const auto fits = [&](const std::string& text) { return display_width(text) <= columns; };
  const auto longest = std::ranges::find_if(texts, fits);
  return longest == texts.end() ? cut_end(texts.back(), columns) : *longest;
}

}  // namespace gflow::cli
