// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "cli/info/machine_text.h"
#include "cli/job/job_text.h"
#include "cli/job_name.h"
#include "command/times.h"

namespace gflow::cli {

namespace {

std::string moment(WallTime time, const Clocks& clocks) {
  return moment_text(time, clocks.now, clocks.zone);
}

/// Of what has happened: the clock may have been set back since, and is not said to be ahead of it.
std::string past_moment(WallTime time, const Clocks& clocks) {
  return time > clocks.now ? day_and_time(time, clocks.now, clocks.zone) : moment(time, clocks);
}

std::string holder_line(const blocker::Holder& holder,
                        const Clocks& clocks,
                        const JobNames& names) {
  const auto name = names.find(holder.job);
  std::string out = name == names.end()
                        ? tr_format("job {} of {}", holder.job.value, printable(holder.user))
                        : tr_format("pod {}", printable(name->second));
  if (!holder.gpus.empty()) out += tr_format(" has GPU {}", fmt::join(holder.gpus, ","));
  return out + (holder.ends ? tr_format(", ends at the latest {}", moment(*holder.ends, clocks))
                            : tr(", has no time limit"));
}

std::string unusable_lines(const blocker::Unusable& device) {
  if (device.drained) {
    return device.drained_reason.empty() ? tr_format("       GPU {} is drained\n", device.gpu)
                                         : tr_format("       GPU {} is drained: {}\n",
                                                     device.gpu,
                                                     printable(device.drained_reason));
  }
  if (!device.trouble.empty()) {
    return tr_format("       GPU {} cannot be used: {}\n", device.gpu, printable(device.trouble));
  }
  std::string out;
  for (const DeviceProcess& process : device.processes) {
    out +=
        process.job
            ? tr_format("       GPU {} is in use by job {}, which does not hold it: {}\n",
                        device.gpu,
                        process.job->value,
                        process_text(process))
            : tr_format(
                  "       GPU {} is used outside gflow: {}\n", device.gpu, process_text(process));
  }
  return out;
}

std::string details(const api::BlockerView& blocker, const Clocks& clocks, const JobNames& names) {
  std::string out;
  for (const blocker::Holder& holder : blocker.holders) {
    out += fmt::format("       {}\n", holder_line(holder, clocks, names));
  }
  for (const blocker::Unusable& device : blocker.unusable) out += unusable_lines(device);
  if (blocker.jobs.empty()) return out;
  const auto name = names.find(blocker.jobs.front());
  if (name != names.end()) {
    out += tr_format("       pod {} is ahead of it\n", printable(name->second));
  } else if (blocker.at) {
    out += tr_format(
        "       job {} should start {}\n", blocker.jobs.front().value, moment(*blocker.at, clocks));
  }
  return out;
}

/// The daemon's words, but a time as clocks on the wall have it.
std::string headline(const api::BlockerView& blocker, const Clocks& clocks) {
  if (blocker.kind == BlockerKind::BeginTime && blocker.at) {
    return tr_format("{}: {}", tr(printable(blocker.code)), moment(*blocker.at, clocks));
  }
  return printable(blocker.text);
}

/// "Job 42 (train)", "Pod default/train".
std::string title(const api::JobView& job, const JobNames& names) {
  const auto name = names.find(job.id);
  if (name != names.end()) return tr_format("Pod {}", printable(name->second));
  return tr_format("Job {} ({})", job.id.value, job_name_text(job.spec));
}

std::string instead(const api::JobView& job, const JobNames& names) {
  const std::string name = title(job, names);
  if (job.outcome)
    return tr_format("{} is not waiting, it has ended: {}.\n", name, ended_text(job));
  if (job.status == Status::Starting) {
    return tr_format("{} is starting: it has its resources, its first process does not run yet.\n",
                     name);
  }
  if (job.status == Status::Completing) return tr_format("{} is being stopped.\n", name);
  if (job.gpu_indices.empty()) return tr_format("{} runs.\n", name);
  if (job.move) {
    return tr_format(
        "{} runs, and moves from GPU {} to GPU {}; its CUDA calls wait until it is "
        "there.\n",
        name,
        job.move->source,
        job.move->target);
  }
  if (job.lends) {
    return tr_format("{} runs; GPU {} is lent to others until it uses it again.\n",
                     name,
                     fmt::join(job.gpu_indices, ","));
  }
  return tr_format("{} runs on GPU {}.\n", name, fmt::join(job.gpu_indices, ","));
}

std::string suggestions_text(const std::string& heading,
                             const std::vector<api::Suggestion>& suggestions) {
  std::string out = suggestions.empty() ? "" : fmt::format("\n{}\n", heading);
  for (const api::Suggestion& suggestion : suggestions) {
    out += fmt::format("  {:<34}  {}\n", printable(suggestion.command), printable(suggestion.text));
  }
  return out;
}

}  // namespace

std::string shortage_text(const api::BlockerView& blocker) {
  const bool has_numbers = blocker.text != blocker.code && blocker.text != tr(blocker.code);
  if (has_numbers || blocker.kind != BlockerKind::Gpus) return "";
  if (!blocker.need || !blocker.available) return "";
  return gpu_shortage_text(*blocker.need, *blocker.available, blocker.gpu_kind);
}

std::string blocked_by_text(const std::vector<api::BlockerView>& blockers,
                            const Clocks& clocks,
                            const JobNames& names) {
  std::string out = tr("\nBlocked by:\n");
  for (std::size_t i = 0; i < blockers.size(); ++i) {
    const api::BlockerView& blocker = blockers[i];
    out += fmt::format("  {:>2}.  {}\n", i + 1, headline(blocker, clocks));
    const std::string shortage = shortage_text(blocker);
    if (!shortage.empty()) out += fmt::format("       {}\n", shortage);
    out += details(blocker, clocks, names);
  }
  return out;
}

std::string expected_start_text(const std::optional<api::ExpectedStart>& start,
                                const Clocks& clocks) {
  if (!start || start->by == api::StartBy::BeginTime) return "";
  if (start->at <= clocks.now && start->by == api::StartBy::RunTimes) {
    return tr("\nExpected start: at any moment, estimated from limits and past run times.\n");
  }
  const std::string at = moment(start->at, clocks);
  if (start->by == api::StartBy::NotBefore)
    return tr_format("\nExpected start: not before {}.\n", at);
  if (start->by == api::StartBy::RunTimes) {
    return tr_format("\nExpected start: {}, estimated from limits and past run times.\n", at);
  }
  return tr_format("\nExpected start: {}, from the time limits of the running jobs.\n", at);
}

std::string why_text(const api::Explanation& explanation,
                     const Clocks& clocks,
                     const JobNames& names) {
  const api::JobView& job = explanation.job;
  if (job.parked && job.parked->how == Parking::Ending) {
    return tr_format("Job {} ({}) goes on as soon as its GPU memory is back from host memory.\n",
                     job.id.value,
                     job_name_text(job.spec));
  }
  if (job.status == Status::Suspended) {
    const std::string name = job_name_text(job.spec);
    const bool is_parked = job.parked && job.parked->how == Parking::Parked;
    const std::string out =
        job.lends ? tr_format("Job {} ({}) waits for the GPU that it lent while it was idle.\n",
                              job.id.value,
                              name)
        : is_parked
            ? tr_format("Job {} ({}) is suspended; its GPU memory is in host memory.\n",
                        job.id.value,
                        name)
            : tr_format("Job {} ({}) is suspended and keeps its memory.\n", job.id.value, name);
    if (job.blockers.empty()) return out;
    return out + blocked_by_text(job.blockers, clocks, names) +
           suggestions_text(tr("What would continue it:"), explanation.suggestions);
  }
  if (!is_pending(job.status)) return instead(job, names);
  std::string out = tr_format(
      "{} has been waiting since {}.\n", title(job, names), past_moment(job.submitted, clocks));
  if (!job.blockers.empty()) out += blocked_by_text(job.blockers, clocks, names);
  if (explanation.told) {
    out += tr_format("\nThe scheduler of the cluster says: {}\n", printable(*explanation.told));
  } else if (job.blockers.empty()) {
    return out + tr("\nNothing blocks it: it starts in the next scheduling pass.\n");
  }
  out += expected_start_text(explanation.expected_start, clocks);
  return out + suggestions_text(tr("What would start it sooner:"), explanation.suggestions);
}

}  // namespace gflow::cli
