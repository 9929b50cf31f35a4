// SPDX-License-Identifier: Apache-2.0
#include "cli/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/text.h"
#include "base/translate.h"
#include "core/requests.h"

namespace gflow::cli {

Newest newest_of(client::Client& daemon) {
  return [&daemon](std::uint64_t back) { return daemon.newest(back); };
}

Result<JobId> resolve_job(std::string_view text, const Newest& newest) {
  const JobReference reference = GF_TRY(parse_job_reference(text));
  if (reference.id) return *reference.id;
  return newest(reference.newest_back);
}

namespace {

/// One piece of a list: "@~1", "42" or "1-5".
Result<std::vector<JobId>> jobs_of(std::string_view piece, const Newest& newest) {
  if (!trim(piece).starts_with('@')) return parse_job_ids(piece);
  return std::vector<JobId>{GF_TRY(resolve_job(piece, newest))};
}

}  // namespace

namespace {

/// The jobs of each piece of the list, as `find` finds them.
template <typename Find>
Result<std::vector<JobId>> resolve(std::span<const std::string> words, Find find) {
  std::vector<JobId> jobs;
  for (const std::string& word : words) {
    for (const std::string_view piece : split(word, ',')) {
      if (trim(piece).empty()) continue;
      const std::vector<JobId> more = GF_TRY(find(piece));
      jobs.insert(jobs.end(), more.begin(), more.end());
    }
  }
  if (jobs.empty()) return fail(Code::Usage, tr("no job given; write an id such as 42"));
  std::ranges::sort(jobs);
  const auto repeated = std::ranges::unique(jobs);
  jobs.erase(repeated.begin(), repeated.end());
  return jobs;
}

/// "train" or "default/train".
Result<std::vector<JobId>> pods_of(std::string_view piece,
                                   const std::string& name_space,
                                   client::Client& daemon) {
  const std::size_t slash = piece.find('/');
  const bool is_full = slash != std::string_view::npos;
  const std::string owner(is_full ? piece.substr(0, slash) : name_space);
  const std::string name(is_full ? piece.substr(slash + 1) : piece);
  const JobQuery query{.users = {owner}, .names = {name}, .fields = {"spec.name"}};
  std::vector<JobId> jobs;
  for (const api::JobView& job : GF_TRY(fetch_jobs(daemon, query)).jobs) jobs.push_back(job.id);
  if (!jobs.empty()) return jobs;
  return fail(Code::NotFound,
              tr_format("gflow-kube has no pod '{}' in the namespace '{}'; 'gqueue' lists those it "
                        "has, and NAMESPACE/NAME names one of another",
                        printable(name),
                        printable(owner)));
}

}  // namespace

Result<std::vector<JobId>> resolve_jobs(std::span<const std::string> words, const Newest& newest) {
  return resolve(words, [&newest](std::string_view piece) { return jobs_of(piece, newest); });
}

Result<std::vector<JobId>> resolve_jobs(std::span<const std::string> words,
                                        client::Client& daemon) {
  const Newest newest = newest_of(daemon);
  const auto name_space = GF_TRY(daemon.name_space());
  return resolve(words, [&](std::string_view piece) {
    auto jobs = jobs_of(piece, newest);
    const bool is_name = !jobs && jobs.error().code == Code::Usage && name_space;
    return is_name ? pods_of(trim(piece), *name_space, daemon) : jobs;
  });
}

Result<JobId> resolve_job(const std::string& word, client::Client& daemon) {
  const std::vector<std::string> words = {word};
  if (!GF_TRY(daemon.name_space())) return resolve_job(word, newest_of(daemon));
  const auto jobs = GF_TRY(resolve_jobs(words, daemon));
  if (jobs.size() == 1) return jobs.front();
  return fail(Code::Usage, tr_format("'{}' is not one pod; name one", printable(word)));
}

Result<std::string> selected_by(const Invocation& invocation, std::string_view option) {
  const std::string text = invocation.get(option);
  if (!invocation.has(option) || !parse_list(text).empty()) return text;
  return fail(Code::Usage, tr_format("--{} names nothing; leave it out, or name one", option));
}

Result<StatusSet> parse_statuses(std::string_view text) {
  StatusSet statuses;
  for (const std::string& name : parse_list(text)) {
    statuses.insert(GF_TRY(parse_status(name)));
  }
  return statuses;
}

std::vector<std::string> parse_list(std::string_view text) {
  std::vector<std::string> list;
  for (const std::string_view piece : split(text, ',')) {
    if (!trim(piece).empty()) list.emplace_back(trim(piece));
  }
  return list;
}

std::vector<std::string> parse_users(std::string_view text) {
  std::vector<std::string> users = parse_list(text);
  const auto is_everyone = [](const std::string& user) { return user == "all" || user == "*"; };
  if (std::ranges::any_of(users, is_everyone)) users.clear();
  return users;
}

namespace {

/// Empty if it is none.
std::optional<WallTime> since_of(std::string_view text, WallTime now, const Zone& zone) {
  using std::chrono::days;
  const auto today = std::chrono::floor<days>(now + zone.offset(now));
  if (text == "today") return zone.instant(today);
  if (text == "yesterday") return zone.instant(today - days(1));
  if (text.ends_with('w')) {
    if (const auto weeks = parse_number(text.substr(0, text.size() - 1)); weeks && *weeks < 1000) {
      return now - std::chrono::weeks(*weeks);
    }
  }
  const bool has_unit =
      !text.empty() && std::string_view("smhd").find(text.back()) != std::string_view::npos;
  if (has_unit) {
    const auto ago = parse_duration(text);
    return ago ? std::optional(now - *ago) : std::nullopt;
  }
  if (text.contains('-')) {
    const auto date = parse_begin(text, now, zone);
    return date ? std::optional(*date) : std::nullopt;
  }
  const auto unix_seconds = parse_number(text);
  if (!unix_seconds || *unix_seconds <= 100'000'000 || *unix_seconds >= 100'000'000'000) {
    return std::nullopt;
  }
  return WallTime(std::chrono::seconds(*unix_seconds));
}

}  // namespace

Result<WallTime> parse_since(std::string_view text, WallTime now, const Zone& zone) {
  if (const auto at = since_of(text, now, zone)) return *at;
  return fail(Code::Usage,
              tr_format("'{}' is not a time; write 2h, 3d, 1w, today, yesterday, 2026-03-01 or "
                        "2026-03-01T12:00",
                        printable(text)));
}

Result<api::JobPage> fetch_jobs(client::Client& daemon, JobQuery query, std::size_t most) {
  api::JobPage all;
  bool first = true;
  GF_CHECK(daemon.job_pages(std::move(query), most, [&](api::JobPage page) {
    // The oldest revision seen: whoever waits for news must not miss what changed between pages.
    if (first) all.revision = page.revision;
    first = false;
    std::ranges::move(page.jobs, std::back_inserter(all.jobs));
    all.next = page.next;
    all.next_after = page.next_after;
    return true;
  }));
  return all;
}

}  // namespace gflow::cli
