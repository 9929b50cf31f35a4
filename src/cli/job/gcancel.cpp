// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <set>

#include "api/account.h"
#include "api/json.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/caller.h"
#include "cli/commands.h"
#include "cli/job/act.h"
#include "cli/job/signals.h"
#include "cli/selection.h"
#include "cli/selection_options.h"
#include "command/context.h"
#include "command/table.h"
#include "os/user.h"

namespace gflow::cli {

namespace {

constexpr std::array kFilters = {"states", "user", "names", "group"};

bool has_filter(const Invocation& invocation) {
  const auto is_given = [&](const char* filter) { return invocation.has(filter); };
  return invocation.has("me") || std::ranges::any_of(kFilters, is_given);
}

/// A group is its owner's, and others may have named one alike: where the caller has one, it is
/// meant.
void keep_own_group(std::vector<api::JobView>& jobs, const std::string& own) {
  const auto is_own = [&](const api::JobView& job) { return job.spec.user.name == own; };
  if (std::ranges::none_of(jobs, is_own)) return;
  std::erase_if(jobs, [&](const api::JobView& job) { return !is_own(job); });
}

/// The jobs a filter means: of those that have not ended, or, to be sent a signal, those that run.
Result<std::vector<api::JobView>> filtered(const Invocation& invocation, Context& context) {
  JobQuery query;
  query.statuses = invocation.has("signal") ? kActive : kNotEnded;
  if (invocation.has("states")) {
    const std::string states = GF_TRY(selected_by(invocation, "states"));
    query.statuses = GF_TRY(parse_statuses(states));
  }
  query.users = GF_TRY(chosen_owners(invocation, context));
  const std::string names = GF_TRY(selected_by(invocation, "names"));
  query.names = parse_list(names);
  query.group = GF_TRY(selected_by(invocation, "group"));
  query.fields = {"user"};
  if (!invocation.words.empty()) {
    query.jobs = GF_TRY(resolve_jobs(invocation.words, context.daemon()));
  }
  std::vector<api::JobView> jobs = GF_TRY(fetch_jobs(context.daemon(), query)).jobs;
  if (!query.group.empty() && !invocation.has("user") && !invocation.has("me")) {
    keep_own_group(jobs, GF_TRY(caller_name(context)));
  }
  return jobs;
}

Result<std::vector<JobId>> not_ended(Context& context, const std::vector<JobId>& jobs) {
  JobQuery query;
  query.statuses = kNotEnded;
  query.jobs = jobs;
  query.fields = {"status"};
  std::vector<JobId> left;
  for (const api::JobView& job : GF_TRY(fetch_jobs(context.daemon(), query)).jobs) {
    left.push_back(job.id);
  }
  return left;
}

Result<std::vector<JobId>> chosen(const Invocation& invocation, Context& context) {
  if (!has_filter(invocation)) {
    return resolve_jobs(invocation.words, context.daemon());
  }
  std::vector<JobId> ids;
  for (const api::JobView& job : GF_TRY(filtered(invocation, context))) ids.push_back(job.id);
  return ids;
}

/// The jobs that would be cancelled because one they depend on is, in order of id.
std::vector<std::pair<const api::JobView*, JobId>> dependents_of(
    const std::vector<api::JobView>& waiting, const std::vector<JobId>& jobs) {
  std::set<JobId> gone(jobs.begin(), jobs.end());
  std::vector<std::pair<const api::JobView*, JobId>> found;
  for (bool more = true; more;) {
    more = false;
    for (const api::JobView& job : waiting) {
      const Dependencies& wanted = job.spec.dependencies;
      if (gone.contains(job.id) || !wanted.auto_cancel) continue;
      const auto is_gone = [&](JobId id) { return gone.contains(id); };
      const bool lost = wanted.mode == DependencyMode::All
                            ? std::ranges::any_of(wanted.jobs, is_gone)
                            : !wanted.jobs.empty() && std::ranges::all_of(wanted.jobs, is_gone);
      if (!lost) continue;
      found.emplace_back(&job, *std::ranges::find_if(wanted.jobs, is_gone));
      gone.insert(job.id);
      more = true;
    }
  }
  std::ranges::sort(found, {}, [](const auto& entry) { return entry.first->id; });
  return found;
}

std::string fate_of(const api::JobView& job, int signal) {
  if (signal != 0) {
    if (job.status == Status::Suspended) {
      return tr_format("would be sent {} when it resumes", signal_name(signal));
    }
    return is_active(job.status) ? tr_format("would be sent {}", signal_name(signal))
                                 : tr("is not running");
  }
  if (is_pending(job.status)) return tr("would be cancelled");
  if (is_ended(job.status)) return tr("has already ended");
  return job.status == Status::Completing ? tr("is already being stopped") : tr("would be stopped");
}

/// Whose jobs may not be touched by who calls, as the daemon sees that.
Result<std::set<std::string>> strangers_to_caller(Context& context,
                                                  const std::vector<api::JobView>& jobs) {
  std::set<std::string> owners;
  for (const api::JobView& job : jobs) owners.insert(job.spec.user.name);
  if (!context.is_remote()) owners.erase(os::own_account().name);
  if (owners.empty()) return owners;
  const std::string body = GF_TRY(context.daemon().call("GET", "/api/v1/principal"));
  const api::PrincipalView caller = GF_TRY(api::read_principal(body));
  if (caller.role != "user") owners.clear();
  owners.erase(caller.name);
  return owners;
}

Result<int> preview(Context& context, const std::vector<JobId>& ids, int signal) {
  JobQuery named;
  named.jobs = ids;
  named.fields = {"user", "status", "spec.name"};
  const std::vector<api::JobView> jobs = GF_TRY(fetch_jobs(context.daemon(), named)).jobs;
  JobQuery pending;
  pending.statuses = kPending;
  pending.fields = {"status", "spec.name", "spec.dependencies"};
  const std::vector<api::JobView> waiting = GF_TRY(fetch_jobs(context.daemon(), pending)).jobs;
  const std::set<std::string> strangers = GF_TRY(strangers_to_caller(context, jobs));
  std::vector<Row> rows;
  const auto add = [&](const api::JobView& job, std::string fate) {
    rows.push_back({{fmt::format("{}", job.id.value)},
                    {printable(job.spec.name)},
                    {std::string(status_code(job.status))},
                    {std::move(fate)}});
  };
  std::map<JobId, const api::JobView*> known;
  for (const api::JobView& job : jobs) known.emplace(job.id, &job);
  int worst = 0;
  std::vector<JobId> changed;
  for (const JobId id : ids) {
    const auto found = known.find(id);
    if (found == known.end()) {
      context.error({Code::NotFound, tr_format("there is no job {}", id.value)});
      worst = std::max(worst, exit_code(Code::NotFound));
    } else if (const std::string& owner = found->second->spec.user.name;
               strangers.contains(owner)) {
      context.error(
          {Code::Permission, tr_format("job {} belongs to {}", id.value, printable(owner))});
      worst = std::max(worst, exit_code(Code::Permission));
    } else {
      add(*found->second, fate_of(*found->second, signal));
      const Status status = found->second->status;
      if (signal != 0 ? is_active(status) : !is_ended(status)) changed.push_back(id);
    }
  }
  const auto dependents =
      signal == 0 ? dependents_of(waiting, changed) : decltype(dependents_of(waiting, ids)){};
  for (const auto& [job, parent] : dependents) {
    add(*job, tr_format("would be cancelled: depends on job {}", parent.value));
  }
  if (context.json) {
    for (const auto& [job, parent] : dependents) changed.push_back(job->id);
    context.out << api::write_job_ids(changed) << '\n';
    return worst;
  }
  const std::vector<Column> columns = {
      {.header = tr("JOBID")},
      {.header = tr("NAME"), .least_width = 16, .cut = Cut::Middle},
      {.header = tr("ST")},
      {.header = tr("EFFECT"), .cut = Cut::End}};
  context.out << screen_table(columns, rows, context.columns, Header::Shown, context.paint);
  return worst;
}

Result<int> send_signal(Context& context, const std::vector<JobId>& jobs, int signal) {
  const Act send{[&](const std::vector<JobId>& ids) {
    return context.daemon().act("signal", {.jobs = ids, .signal = signal, .at = {}});
  }};
  return act_on_each(
      context, jobs, send, [&, suspended = std::optional<std::set<JobId>>()](JobId job) mutable {
        if (!suspended) suspended = those_in(context, jobs, {Status::Suspended});
        const std::string name = signal_name(signal);
        return suspended->contains(job)
                   ? tr_format(
                         "Job {} is suspended and is sent {} when it resumes.", job.value, name)
                   : tr_format("Sent {} to job {}.", name, job.value);
      });
}

Result<int> run_cancel(const Invocation& invocation, Context& context) {
  if (std::ranges::find(invocation.words, "all") != invocation.words.end()) {
    return fail(Code::Usage, tr("'all' is not a job id; 'gcancel --me' cancels all of your jobs"));
  }
  if (invocation.words.empty() && !has_filter(invocation)) {
    return fail(Code::Usage, tr("no job given; write an id such as 42, or a filter such as --me"));
  }
  int signal = 0;
  if (invocation.has("signal")) signal = GF_TRY(parse_signal(invocation.get("signal")));
  const std::vector<JobId> jobs = GF_TRY(chosen(invocation, context));
  if (jobs.empty()) {
    context.note(tr("no job matches"));
    if (context.json) context.out << api::write_job_ids({}) << '\n';
    return 0;
  }
  if (invocation.has("dry-run")) return preview(context, jobs, signal);
  if (signal != 0) return send_signal(context, jobs, signal);
  const bool is_found = invocation.words.empty() && !invocation.has("states");
  Act cancel{[&](const std::vector<JobId>& ids) {
               return context.daemon().act("cancel", {.jobs = ids, .signal = 0, .at = {}});
             },
             Start::AtNewest};
  // One that a filter found and that ended since is as it was to be.
  if (is_found) {
    cancel.left = [&](const std::vector<JobId>& ids) { return not_ended(context, ids); };
  }
  return act_on_each(
      context, jobs, cancel, [&, active = std::optional<std::set<JobId>>()](JobId job) mutable {
        if (!active) active = those_in(context, jobs, kActive);
        return active->contains(job) ? tr_format("Job {} is being stopped.", job.value)
                                     : tr_format("Job {} cancelled.", job.value);
      });
}

std::vector<Option> gcancel_options() {
  std::vector<Option> options = {
      {.name = "signal",
       .letters = "S",
       .value = "SIGNAL",
       .help = tr("Do not cancel; send this signal (INT, SIGUSR1, 9) to every process of "
                  "running jobs.")},
      {.name = "dry-run", .help = tr("Only print what would be cancelled, including dependents.")},
      {.name = "states",
       .letters = "s",
       .value = "LIST",
       .help = tr("Only jobs in these states, such as Queued,Running."),
       .complete = Complete::State},
  };
  std::ranges::move(owner_options(), std::back_inserter(options));
  options.push_back(names_option());
  options.push_back(group_option());
  options.push_back(
      {.name = "all", .refused = tr("is not an option; 'gcancel --me' cancels all of your jobs")});
  return options;
}

}  // namespace

Command gcancel_command() {
  return {
      .name = "gcancel",
      .summary = tr("cancel jobs"),
      .usage = {"[options] JOB...",
                "[options] --me | --user LIST | --states LIST | --names LIST",
                "[options] --group NAME",
                "--signal SIGNAL JOB..."},
      .description =
          tr("Cancels jobs. A waiting job is cancelled at once. A running job gets SIGTERM and, "
             "when its grace time is over, SIGKILL for every remaining process. Jobs that depend "
             "on it are cancelled too, unless they were submitted with --no-auto-cancel.\n\nAll "
             "jobs given are tried; the exit code is that of the worst failure."),
      .options = gcancel_options(),
      .words =
          {.name = "JOB...",
           .help =
               tr("Job ids, such as 42, 1-5 or 1,3,7-9; @ is your newest job, @~1 the one before."),
           .most = kAnyNumber,
           .complete = Complete::Job},
      .examples = {{"gcancel 42", tr("cancel one job")},
                   {"gcancel 1-5 9", tr("cancel several jobs")},
                   {"gcancel --me -s Queued", tr("cancel all of your waiting jobs")},
                   {"gcancel --signal USR1 42", tr("send a signal without cancelling")},
                   {"gcancel --dry-run 42", tr("show what would be cancelled")}},
      .run = run_cancel,
  };
}

}  // namespace gflow::cli
