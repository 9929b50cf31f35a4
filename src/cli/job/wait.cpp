// SPDX-License-Identifier: Apache-2.0
#include "cli/job/wait.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "base/text.h"
#include "cli/patience.h"
#include "cli/selection.h"

namespace gflow::cli {

namespace {

/// "Waiting for job 5: queued (Resources)", "Waiting for 3 of 20 jobs".
std::string waits_for_text(const std::vector<api::JobView>& jobs) {
  const auto left = std::ranges::count_if(
      jobs, [](const api::JobView& job) { return !job.outcome && !job.ended; });
  if (jobs.size() > 1) return fmt::format("Waiting for {} of {} jobs", left, jobs.size());
  const api::JobView& job = jobs.front();
  return fmt::format("Waiting for job {}: {}{}",
                     job.id.value,
                     status_name(job.status),
                     job.reason.empty() ? "" : fmt::format(" ({})", printable(job.reason)));
}

Result<std::vector<api::JobView>> wait_without_limit(Context& context,
                                                     const std::vector<JobId>& jobs) {
  Patience patience(context);
  std::uint64_t revision = 0;
  const std::function<Result<api::JobPage>()> fetch = [&] {
    JobQuery query;
    query.jobs = jobs;
    return fetch_jobs(context.daemon(), query);
  };
  std::string waits_for;
  bool told = false;
  const std::function<Result<std::uint64_t>()> change = [&] {
    const std::optional<JobId> one = jobs.size() == 1 ? std::optional(jobs.front()) : std::nullopt;
    if (std::exchange(told, true)) return context.daemon().wait_change(revision, one);
    return context.daemon().wait_change(revision, one, [&] { context.hint(waits_for); });
  };
  while (true) {
    api::JobPage page = GF_TRY(patience(fetch));
    for (const JobId id : jobs) {
      if (std::ranges::find(page.jobs, id, &api::JobView::id) == page.jobs.end()) {
        return fail(Code::NotFound, fmt::format("there is no job {}", id.value));
      }
    }
    if (std::ranges::all_of(page.jobs,
                            [](const api::JobView& job) { return job.outcome || job.ended; })) {
      return std::move(page.jobs);
    }
    revision = page.revision;
    waits_for = waits_for_text(page.jobs);
    GF_TRY(patience(change));
  }
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
                fmt::format("{} not ended within {}",
                            jobs.size() == 1 ? "the job has" : "the jobs have",
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

}  // namespace gflow::cli
