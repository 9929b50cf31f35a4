// SPDX-License-Identifier: Apache-2.0
#include "cli/job/wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "base/text.h"
#include "base/translate.h"
#include "cli/job_reason.h"
#include "cli/patience.h"
#include "cli/selection.h"

namespace gflow::cli {

namespace {

/// "Waiting for job 5: Queued (Resources)", "Waiting for 3 of 20 jobs".
std::string waits_for_text(const std::vector<api::JobView>& left, std::size_t jobs) {
  if (jobs > 1) return tr_format("Waiting for {} of {} jobs", left.size(), jobs);
  const api::JobView& job = left.front();
  return tr_format("Waiting for job {}: {}{}",
                   job.id.value,
                   status_name(job.status),
                   job.reason.empty() ? "" : fmt::format(" ({})", printable(reason_of(job))));
}

bool is_over(const api::JobView& job) { return job.outcome || job.ended; }

Result<void> all_there(const std::vector<api::JobView>& found, const std::vector<JobId>& jobs) {
  std::set<JobId> there;
  for (const api::JobView& job : found) there.insert(job.id);
  for (const JobId id : jobs) {
    if (!there.contains(id)) {
      return fail(Code::NotFound, tr_format("there is no job {}", id.value));
    }
  }
  return {};
}

/// Asks again only for those that have not ended, when the last of them has changed: of ten
/// thousand jobs that end one by one each is asked for a few times.
Result<std::vector<api::JobView>> wait_without_limit(Context& context,
                                                     const std::vector<JobId>& jobs) {
  Patience patience(context);
  std::vector<api::JobView> ended;
  std::vector<JobId> left = jobs;
  bool told = false;
  while (true) {
    const std::function<Result<api::JobPage>()> fetch = [&] {
      JobQuery query;
      query.jobs = left;
      return fetch_jobs(context.daemon(), query);
    };
    api::JobPage page = GF_TRY(patience(fetch));
    GF_CHECK(all_there(page.jobs, left));
    std::vector<api::JobView> running;
    for (api::JobView& job : page.jobs) {
      (is_over(job) ? ended : running).push_back(std::move(job));
    }
    if (running.empty()) break;
    left.clear();
    for (const api::JobView& job : running) left.push_back(job.id);
    const JobId last = left.back();
    const std::string waits_for = waits_for_text(running, jobs.size());
    const std::function<Result<std::uint64_t>()> change = [&] {
      if (std::exchange(told, true)) return context.daemon().wait_change(page.revision, last);
      return context.daemon().wait_change(page.revision, last, [&] { context.hint(waits_for); });
    };
    GF_TRY(patience(change));
  }
  std::ranges::sort(ended, {}, &api::JobView::id);
  return ended;
}

/// What the waiting thread leaves for the one that looks at the clock.
struct Mailbox {
  std::mutex mutex;
  std::condition_variable filled;
  std::optional<Result<std::vector<api::JobView>>> answer;
};

}  // namespace

Result<std::vector<api::JobView>> wait_for(Context& context,
                                           const std::vector<JobId>& jobs,
                                           std::optional<std::chrono::milliseconds> most) {
  if (!most) return wait_without_limit(context, jobs);
  // Owned by the waiting thread and by this function, whichever of them is the last to let go: a
  // long poll cannot be broken off, so after a timeout that thread is left behind.
  const auto mailbox = std::make_shared<Mailbox>();
  auto apart = std::make_shared<Context>(context.out, context.err);
  apart->set_socket(context.socket());
  apart->err_is_terminal = context.err_is_terminal;
  std::thread([mailbox, apart, jobs] {
    auto answer = wait_without_limit(*apart, jobs);
    const std::lock_guard lock(mailbox->mutex);
    mailbox->answer = std::move(answer);
    mailbox->filled.notify_one();
  }).detach();
  std::unique_lock lock(mailbox->mutex);
  if (!mailbox->filled.wait_for(lock, *most, [&] { return mailbox->answer.has_value(); })) {
    return fail(Code::Timeout,
                tr_count(jobs.size(),
                         "the job has not ended within {}",
                         "the jobs have not ended within {}",
                         duration_text(std::chrono::ceil<std::chrono::seconds>(*most))));
  }
  return *std::move(mailbox->answer);
}

int exit_code_of(const api::JobView& job) {
  if (!job.outcome) return kNoExitCode;
  if (job.outcome->reason == EndReason::Exited) return job.outcome->exit_code;
  if (job.outcome->reason == EndReason::Signalled) return 128 + job.outcome->signal;
  if (job.outcome->reason == EndReason::OutOfMemory) return 128 + SIGKILL;
  return kNoExitCode;
}

int exit_code_of(const std::vector<api::JobView>& jobs) {
  int worst = 0;
  for (const api::JobView& job : jobs) worst = std::max(worst, exit_code_of(job));
  return worst;
}

std::string failure_advice(const std::vector<api::JobView>& ended) {
  const auto failed = std::ranges::find_if(
      ended, [](const api::JobView& job) { return exit_code_of(job) != 0 && job.started; });
  if (failed == ended.end()) return "";
  return tr_format("'gjob log {}' shows its output", failed->id.value);
}

}  // namespace gflow::cli
