// SPDX-License-Identifier: Apache-2.0
#include "cli/job/job_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "base/translate.h"
#include "cli/described.h"
#include "cli/gpu_idle.h"
#include "cli/job_name.h"
#include "cli/job_reason.h"
#include "command/wrap.h"
#include "core/cpu_list.h"
#include "core/gpu_request.h"
#include "core/request_text.h"

namespace gflow::cli {

namespace {

/// Lines of "name  value", names padded; empty values are left out.
class Facts {
 public:
  /// For a screen of so many columns; 0: for none.
  explicit Facts(std::size_t columns) : columns_(columns) {}

  /// What is too long for the line goes on below where it began.
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) out_ += labelled(fmt::format("  {:<12}  ", name), value, columns_);
  }
  /// On one line, to be copied.
  void add_as_is(std::string_view name, const std::string& value) {
    if (!value.empty()) out_ += fmt::format("  {:<12}  {}\n", name, value);
  }
  [[nodiscard]] const std::string& text() const { return out_; }

 private:
  std::size_t columns_;
  std::string out_;
};

std::string ids_text(const std::vector<JobId>& ids) {
  std::string out;
  for (const JobId id : ids) out += fmt::format("{}{}", out.empty() ? "" : ",", id.value);
  return out;
}

/// As --gpus takes it, where that is more than a number.
std::string gpus_as_written(const Request& request) {
  const std::string text = gpu_request_text(request);
  if (parse_number(text)) return "";
  return request.mode == GpuMode::TimeSlice ? text + " --shared" : text;
}

/// Whether it may be interrupted for a job ahead of it, and how.
std::string preemption_text(const JobSpec& spec) {
  if (spec.preemption == Preemption::None) return "";
  if (spec.preemption == Preemption::Suspend) return tr("suspended in memory");
  if (spec.preempt_signal == 0) return tr("stopped and requeued");
  return tr_format("sent signal {}, stopped and requeued", signal_text(spec.preempt_signal));
}

std::string dependency_text(const Dependencies& wanted) {
  if (wanted.jobs.empty()) return "";
  std::string out = ids_text(wanted.jobs);
  if (wanted.jobs.size() > 1) {
    out = wanted.mode == DependencyMode::Any ? tr_format("any of {}", out)
                                             : tr_format("all of {}", out);
  }
  return out + (wanted.auto_cancel ? "" : tr(" (stays queued if that fails)"));
}

std::string usage_text(const Outcome& outcome) {
  std::string out = tr_format(
      "{} of CPU time", duration_text(std::chrono::round<std::chrono::seconds>(outcome.cpu_time)));
  if (outcome.peak_memory.bytes > 0) {
    out += tr_format(", {:.1f} MiB of memory at peak",
                     static_cast<double>(outcome.peak_memory.bytes) / (1 << 20));
  }
  if (outcome.peak_gpu_memory.bytes > 0) {
    out += tr_format(", {} of GPU memory at peak", memory_text(outcome.peak_gpu_memory));
  }
  return out;
}

/// "GPU 0: 14G of 8G, more than it asked for; GPU 1: 3G of 8G".
std::string gpu_memory_text(const api::JobView& job) {
  std::vector<std::string> parts;
  for (const GpuMemoryUse& use : job.gpu_memory) {
    std::string text = job.peers.empty() ? "" : printable(use.node) + " ";
    text += fmt::format("GPU {}: {}", use.gpu, memory_text(use.used, use.reserved));
    if (use.reserved > Memory{}) text += tr_format(" of {}", memory_text(use.reserved));
    if (use.is_over()) text += tr(", more than requested");
    parts.push_back(std::move(text));
  }
  return join(parts, tr("; "));
}

/// "for 47m"; "" where it is shorter than people mind.
std::string idle_text(const api::JobView& job) {
  const auto idle = long_idle(job);
  return idle > std::chrono::seconds(0) ? tr_format("for {}", duration_text(idle)) : "";
}

/// "from GPU 2 to GPU 0"; why it stayed, if it was to.
std::string move_text(const api::JobView& job) {
  if (job.move) return tr_format("from GPU {} to GPU {}", job.move->source, job.move->target);
  if (job.move_refused.empty()) return "";
  return tr_format("it stayed where it was: {}", printable(job.move_refused));
}

/// Where its GPU memory is while it is suspended, or why it stays where it is.
std::string parked_text(const api::JobView& job) {
  if (!job.parked) return "";
  const std::string amount = memory_text(job.parked->memory);
  if (job.lends && job.parked->how == Parking::Parked) {
    return job.status == Status::Suspended
               ? tr_format(
                     "it wants its GPU back, which it lent; {} of GPU memory are in host memory",
                     amount)
               : tr_format(
                     "its GPU is lent while it is idle; {} of GPU memory are in host memory until "
                     "it uses it",
                     amount);
  }
  switch (job.parked->how) {
    case Parking::Begun:
      return tr("its GPU memory is being taken to host memory");
    case Parking::Parked:
      return tr_format("{} of GPU memory are in host memory", amount);
    case Parking::Ending:
      return tr_format("{} of GPU memory come back from host memory", amount);
    case Parking::None:
      break;
  }
  const std::string& why = job.parked->refused;
  return why.empty() ? tr("suspended, it keeps its GPU memory")
                     : tr_format("suspended, it keeps its GPU memory: {}", printable(why));
}

/// "GPU 0,1 and CPU 8-15"; "" for a job that holds neither by number.
std::string devices_text(const std::vector<int>& gpus, const std::vector<int>& cpus) {
  const std::string near = cpus.empty() ? "" : "CPU " + cpu_list_text(cpus);
  if (gpus.empty()) return near;
  if (near.empty()) return fmt::format("GPU {}", fmt::join(gpus, ","));
  return tr_format("GPU {} and {}", fmt::join(gpus, ","), near);
}

/// What it has on each of its nodes: "GPU 0,1" where it has one, "n1: GPU 0; n2: GPU 3 and CPU
/// 0-7".
std::string place_text(const api::JobView& job) {
  if (job.peers.empty()) return devices_text(job.gpu_indices, job.cpu_indices);
  std::vector<Allocation> parts = job.peers;
  parts.insert(parts.begin(), {job.node, job.gpu_indices, job.cpu_indices});
  std::vector<std::string> lines;
  for (const Allocation& part : parts) {
    const std::string devices = devices_text(part.gpus, part.cpus);
    lines.push_back(devices.empty() ? printable(part.node)
                                    : tr_format("{}: {}", printable(part.node), devices));
  }
  return join(lines, tr("; "));
}

void add_request(Facts& facts, const api::JobView& job) {
  const JobSpec& spec = job.spec;
  facts.add(tr("Requested"), printable(request_in_words(spec.request)));
  facts.add(tr("GPU request"), printable(gpus_as_written(spec.request)));
  if (job.peers.empty()) facts.add(tr("Node"), printable(job.node));
  facts.add(tr("Allocated"), place_text(job));
  facts.add(tr("Chosen for"), printable(kept_text(job.placed_because)));
  facts.add(tr("Time limit"), spec.time_limit ? duration_text(*spec.time_limit) : tr("none"));
  facts.add(tr("Grace"), duration_text(spec.grace));
  facts.add(tr("Priority"), fmt::format("{}", spec.priority));
  facts.add(tr("Project"), printable(spec.project));
  facts.add(tr("Depends on"), dependency_text(spec.dependencies));
  if (!spec.group.empty()) {
    const std::string limit =
        spec.max_concurrent > 0 ? tr_format(", at most {} at once", spec.max_concurrent) : "";
    facts.add(tr("Group"), printable(spec.group) + limit);
  }
  facts.add(tr("Preemption"), preemption_text(spec));
  if (spec.requeue) facts.add(tr("Requeue"), tr("if the machine or its supervisor fails"));
  if (spec.max_retries > 0) {
    facts.add(tr("Retries"), tr_format("{} of {} used", job.retries, spec.max_retries));
  }
  for (const Fact& fact : described_facts(spec)) facts.add(tr(fact.name), fact.value);
}

/// What holds it to its part; before it runs, what would.
std::string gpu_share_text(const api::JobView& job, const api::DaemonView& daemon) {
  const bool is_none = daemon.enforcement_gpu_memory.starts_with("none");
  const bool would_not = job.spec.allocation || is_none;
  if (job.gpu_limits ? job.gpu_limits->memory == GpuLimit::None : would_not) {
    std::string text =
        tr("not enforced: what a job asked for is reserved, and one over its GPU memory is shown");
    if (job.spec.allocation || !is_none) return text;
    return tr_format("{} ({})", text, tr(printable(daemon.enforcement_gpu_memory)));
  }
  // Who takes turns has all of its time.
  const bool has_part = job.spec.request.mode == GpuMode::Fraction;
  const Share limit = job.spec.request.share_limit;
  if (!job.gpu_limits) {
    if (limit != Share{}) {
      return tr_format(
          "memory capped by the interposer on NVIDIA GPUs, compute {} guaranteed, up to {}",
          share_text(job.spec.request.share),
          share_text(limit));
    }
    return has_part ? tr("memory and compute capped by the interposer on NVIDIA GPUs")
                    : tr("memory capped by the interposer on NVIDIA GPUs, compute not limited");
  }
  if (job.gpu_limits->compute != GpuLimit::None) {
    if (limit == Share{}) return tr("memory and compute capped by the interposer");
    return tr_format("memory capped by the interposer, compute {} guaranteed, up to {}",
                     share_text(job.spec.request.share),
                     share_text(limit));
  }
  return has_part ? tr("memory capped by the interposer, compute not enforced")
                  : tr("memory capped by the interposer, compute not limited");
}

/// What keeps it from GPUs it was not given; before it runs, what would. "" where that is none of
/// its business.
std::string isolation_text(const api::JobView& job, const api::DaemonView& daemon) {
  const Request& request = job.spec.request;
  if (job.spec.allocation) return "";
  if (request.see_all) return tr("none: it asked to see every GPU");
  if (job.gpu_isolation == GpuIsolation::Filter) return tr("device filter of its control group");
  if (job.gpu_isolation == GpuIsolation::Landlock) return tr("landlock");
  if (request.gpus == 0) return "";
  if (job.gpu_isolation) return tr("none: variables alone name its GPUs");
  return is_pending(job.status) ? tr(printable(daemon.enforcement_gpu_isolation)) : "";
}

void add_enforcement(Facts& facts, const api::JobView& job, const api::DaemonView& daemon) {
  facts.add(tr("Stopped by"), tr(printable(daemon.enforcement_kill)));
  if (job.spec.request.memory.bytes > 0) {
    facts.add(tr("Memory limit"), tr(printable(daemon.enforcement_memory)));
  }
  if (job.spec.request.cpus > 0) facts.add(tr("CPU limit"), tr(printable(daemon.enforcement_cpu)));
  if (!job.cpu_indices.empty())
    facts.add(tr("CPU binding"), tr(printable(daemon.enforcement_binding)));
  facts.add(tr("Processes"), tr(printable(daemon.enforcement_processes)));
  const Request& request = job.spec.request;
  if (request.mode != GpuMode::Whole && request.gpus > 0) {
    facts.add(tr("GPU share"), gpu_share_text(job, daemon));
  }
  facts.add(tr("Isolation"), isolation_text(job, daemon));
}

/// When it should start and by what that is known, unless that is its begin time.
std::string start_text(const std::optional<api::ExpectedStart>& start,
                       const std::function<std::string(WallTime)>& time_text) {
  if (!start || start->by == api::StartBy::BeginTime) return "";
  const std::string at = time_text(start->at);
  if (start->by == api::StartBy::NotBefore) return tr_format("not before {}", at);
  return start->by == api::StartBy::RunTimes
             ? tr_format("expected {}, estimated from limits and past run times", at)
             : tr_format("expected {}, from the time limits of the running jobs", at);
}

}  // namespace

std::string ended_text(const api::JobView& job) {
  if (!job.outcome) return "";
  std::string out = printable(outcome_text(*job.outcome));
  // How long it ran is part of this reason.
  if (job.started && job.outcome->reason != EndReason::TimeLimit)
    out = tr_format("{} after {}", out, duration_text(job.run_time));
  return out;
}

std::string job_text(const api::Explanation& explained,
                     const std::optional<api::DaemonView>& daemon,
                     const std::function<std::string(WallTime)>& time_text,
                     const Painter& paint,
                     std::size_t columns) {
  const api::JobView& job = explained.job;
  const auto when = [&](const std::optional<WallTime>& time) {
    return time ? time_text(*time) : std::string();
  };
  std::string title = tr_format("Job {}: {}", job.id.value, job_name_text(job.spec));
  Facts facts(columns);
  if (columns > 0 && display_width(title) > columns) {
    title = cut_middle(title, columns);
    facts.add_as_is(tr("Name"), job_name_text(job.spec));
  }
  facts.add(tr("State"), fmt::format("{} ({})", status_name(job.status), status_code(job.status)));
  if (!job.outcome && !job.reason.empty()) facts.add(tr("Reason"), printable(reason_of(job)));
  facts.add(tr("Ended"), ended_text(job));
  facts.add(tr("User"), printable(job.spec.user.name));
  add_request(facts, job);
  facts.add(tr("Submitted"), when(job.submitted));
  facts.add(tr("Begin"), when(job.spec.begin));
  facts.add(tr("Start"), start_text(explained.expected_start, time_text));
  facts.add(tr("Started"), when(job.started));
  facts.add(tr("Ended at"), when(job.ended));
  if (job.started) facts.add(tr("Run time"), clock_text(job.run_time));
  if (job.attempt > 0) facts.add(tr("Attempt"), fmt::format("{}", job.attempt));
  if (job.pid > 0 && !job.ended) facts.add(tr("Process"), fmt::format("{}", job.pid));
  facts.add(tr("GPU memory"), gpu_memory_text(job));
  facts.add(tr("GPU idle"), idle_text(job));
  facts.add(tr("Parked"), parked_text(job));
  facts.add(tr("Move"), move_text(job));
  if (job.outcome && job.started) facts.add(tr("Used"), usage_text(*job.outcome));
  facts.add_as_is(tr("Command"), printable(job.spec.command));
  facts.add_as_is(tr("Directory"), printable(job.spec.work_dir));
  facts.add_as_is(tr("Log"), printable(job.log_path));
  if (daemon && !job.ended) add_enforcement(facts, job, *daemon);
  return paint(Style::Bold, title) + '\n' + facts.text();
}

}  // namespace gflow::cli
