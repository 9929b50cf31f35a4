// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/screen_rows.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/translate.h"
#include "cli/queue/brief.h"
#include "command/times.h"

namespace gflow::cli {

namespace {

std::string time_of_limit(const api::JobView& job) {
  const std::string time = job.started ? brief_duration(job.run_time) : "-";
  if (!job.spec.time_limit) return time;
  return fmt::format("{}/{}", time, brief_duration(*job.spec.time_limit));
}

std::string_view mark_of(api::StartBy by) {
  if (by == api::StartBy::BeginTime) return "";
  return by == api::StartBy::NotBefore ? ">" : "~";
}

}  // namespace

void ScreenRows::know(const api::QueueView& queue) { starts_.know(queue); }

void ScreenRows::look_at(const std::vector<api::JobView>& jobs) {
  for (const api::JobView& job : jobs) {
    if (first_user_.empty()) first_user_ = job.spec.user.name;
    const bool is_anothers = !viewer_.user.empty() && job.spec.user.name != viewer_.user;
    if (is_anothers || job.spec.user.name != first_user_) shows_users_ = true;
    widest_id_ = std::max(widest_id_, fmt::formatted_size("{}", job.id.value));
    starts_.look_at(job, viewer_.now);
  }
}

std::vector<Column> ScreenRows::columns() const {
  if (!listing_.fields.empty()) return columns_of(listing_.fields);
  std::vector<Column> all = {{.header = tr("JOBID"), .cut = Cut::Words, .narrowest = widest_id_},
                             {.header = tr("NAME"), .cut = Cut::Middle, .narrowest = 10}};
  if (shows_users_) {
    all.push_back({.header = tr("USER"), .cut = Cut::End, .narrowest = 6, .leaves = 2});
  }
  all.push_back({.header = tr("ST")});
  all.push_back({.header = tr("GPUS"), .leaves = 1});
  all.push_back({.header = tr("TIME/LIMIT"), .leaves = 3});
  all.push_back({.header = tr("START"), .leaves = listing_.by_start ? 0 : 4});
  all.push_back({.header = tr("WHERE/WHY"), .cut = Cut::Words, .narrowest = 15});
  return all;
}

Row ScreenRows::row(const FoldedJobs& folded, const std::string& prefix) const {
  const api::JobView& job = folded.first();
  if (!listing_.fields.empty()) return chosen_row(job, prefix);
  const bool own = shows_users_ && job.spec.user.name == viewer_.user;
  Row row = {{prefix + folded.ids()}, {folded.name(), own ? Style::Bold : Style::Plain}};
  if (shows_users_) row.push_back({printable(job.spec.user.name)});
  const std::string gpus = brief_gpus(job.spec.request);
  row.push_back({std::string(status_code(job.status)), style_of(job.status)});
  row.push_back({folded.jobs().size() > 1 && gpus != "-" ? tr_format("{} each", gpus) : gpus});
  row.push_back({time_of_limit(job)});
  row.push_back({start_text(job)});
  row.push_back({brief_where_or_why(job), Style::Plain, briefer_why(job)});
  return row;
}

Row ScreenRows::reference(const FoldedJobs& jobs, const std::string& prefix) const {
  Row row(columns().size());
  row.front() = {tr_format("{}→ see job {}", prefix, jobs.ids()), Style::Grey};
  return row;
}

Row ScreenRows::chosen_row(const api::JobView& job, const std::string& prefix) const {
  Row row = row_of(listing_.fields, job);
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (listing_.fields[i]->name == "JOBID") row[i].text.insert(0, prefix);
  }
  return row;
}

std::string ScreenRows::start_text(const api::JobView& job) const {
  if (job.started && !is_pending(job.status)) {
    return brief_moment(*job.started, viewer_.now, viewer_.zone);
  }
  const auto expected = starts_.of(job.id);
  if (!expected) return "-";
  const std::string at = brief_moment(expected->at, viewer_.now, viewer_.zone);
  return fmt::format("{}{}", mark_of(expected->by), at);
}

}  // namespace gflow::cli
