// SPDX-License-Identifier: Apache-2.0
#include "cli/job/act.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <ostream>
#include <span>
#include <utility>

#include "api/json.h"
#include "base/translate.h"
#include "cli/selection.h"
#include "os/clock.h"

namespace gflow::cli {

Positional jobs_to_act_on() {
  return {.name = "JOB...",
          .help = tr("Job ids, such as 42 or 1-5; @ is your newest job."),
          .least = 1,
          .most = kAnyNumber,
          .complete = Complete::Job};
}

std::set<JobId> those_in(Context& context, const std::vector<JobId>& jobs, StatusSet statuses) {
  JobQuery query;
  query.jobs = jobs;
  query.statuses = statuses;
  query.fields = {"status"};
  std::set<JobId> found;
  // What was done is known; a daemon that went away meanwhile does not make it untrue.
  const auto page = fetch_jobs(context.daemon(), query);
  for (const api::JobView& job : page ? page->jobs : std::vector<api::JobView>{}) {
    found.insert(job.id);
  }
  return found;
}

namespace {

/// What one request names at most, so that others wait for a few hundredths of a second only.
constexpr std::size_t kAtOnce = 1000;
/// How long a person is left without a word of how far it is.
constexpr std::chrono::seconds kSilent{2};
/// What a terminal is told of single jobs at most.
constexpr std::size_t kMostLines = 20;

/// Acts on jobs in parts, and on halves of a part that is refused, down to the one that cannot.
class Acting {
 public:
  Acting(const Act& act, Context& context) : act_(act), context_(context) {}

  void on(std::span<const JobId> jobs) {
    const std::size_t parts = (jobs.size() + kAtOnce - 1) / kAtOnce;
    std::size_t done = 0;
    for (std::size_t i = 0; i < parts && !is_over_; ++i) {
      const std::size_t first = (act_.start == Start::AtOldest ? i : parts - 1 - i) * kAtOnce;
      const auto part = jobs.subspan(first, std::min(kAtOnce, jobs.size() - first));
      on_part(part);
      done += part.size();
      if (i + 1 < parts && !is_over_) say_how_far(done, jobs.size());
    }
  }

  std::set<JobId> accepted;
  std::set<JobId> changed;
  std::map<JobId, Error> refused;  ///< by the job, or the first of those nothing more was asked of

 private:
  void say_how_far(std::size_t done, std::size_t all) {
    const MonoTime now = os::now().mono;
    if (now - told_ < kSilent) return;
    told_ = now;
    context_.hint(tr_format("{} of {} jobs so far", done, all));
  }

  void on_part(std::span<const JobId> jobs) {
    if (is_over_ || jobs.empty()) return;
    auto done = act_.request({jobs.begin(), jobs.end()});
    if (done) {
      accepted.insert(jobs.begin(), jobs.end());
      changed.insert(done->begin(), done->end());
      return;
    }
    is_over_ = done.error().code == Code::Unreachable;
    if (act_.left && done.error().code == Code::WrongState) {
      const auto left = act_.left({jobs.begin(), jobs.end()});
      if (left && left->size() < jobs.size()) return on_part(*left);
    }
    if (jobs.size() == 1 || is_over_) {
      refused.emplace(jobs.front(), std::move(done).error());
      return;
    }
    const auto older = jobs.first(jobs.size() / 2);
    const auto newer = jobs.subspan(older.size());
    on_part(act_.start == Start::AtOldest ? older : newer);
    on_part(act_.start == Start::AtOldest ? newer : older);
  }

  const Act& act_;
  Context& context_;
  MonoTime told_ = os::now().mono;
  bool is_over_ = false;  ///< the daemon does not answer
};

}  // namespace

int act_on_each(Context& context,
                const std::vector<JobId>& jobs,
                const Act& act,
                const std::function<std::string(JobId)>& say,
                const std::function<std::string(JobId)>& say_otherwise) {
  Acting acting(act, context);
  acting.on(jobs);
  int worst = 0;
  for (const auto& [job, error] : acting.refused) {
    context.error(error);
    worst = std::max(worst, exit_code(error.code));
  }
  if (acting.accepted.empty() && worst != 0) return worst;
  if (context.json) {
    context.out << api::write_job_ids({acting.changed.begin(), acting.changed.end()}) << '\n';
    return worst;
  }
  const std::set<JobId>& told = say_otherwise ? acting.accepted : acting.changed;
  const bool is_cut = context.out_is_terminal && told.size() > kMostLines;
  std::size_t lines = is_cut ? kMostLines - 1 : told.size();
  for (const JobId job : told) {
    if (lines-- == 0) break;
    context.out << (acting.changed.contains(job) ? say(job) : say_otherwise(job)) << '\n';
  }
  if (is_cut) context.out << tr_format("... {} more", told.size() - (kMostLines - 1)) << '\n';
  return worst;
}

}  // namespace gflow::cli
