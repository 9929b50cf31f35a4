// SPDX-License-Identifier: Apache-2.0
#include "cli/queue/brief.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "cli/gpu_idle.h"
#include "command/times.h"
#include "core/gpu_request.h"

namespace gflow::cli {

namespace {

std::string numbers_text(const std::vector<std::uint64_t>& numbers) {
  return ranges_text(std::span<const std::uint64_t>(numbers));
}

std::string numbers_of(const std::vector<JobId>& jobs) {
  std::vector<std::uint64_t> numbers;
  for (const JobId id : jobs) numbers.push_back(id.value);
  return numbers_text(numbers);
}

std::string amount_text(BlockerKind kind, std::int64_t amount) {
  if (kind == BlockerKind::GpuShare || kind == BlockerKind::GpuLimit) {
    return share_text(Share{static_cast<std::int32_t>(amount)});
  }
  if (kind == BlockerKind::GpuMemory || kind == BlockerKind::HostMemory) {
    return memory_text(Memory{std::max<std::int64_t>(amount, 0)});
  }
  return fmt::format("{}", std::max<std::int64_t>(amount, 0));
}

std::string_view brief_word(const api::BlockerView& blocker) {
  switch (blocker.kind) {
    case BlockerKind::OnHold:
      return tr_later("held");
    case BlockerKind::HostMemory:
      return tr_later("Memory");
    case BlockerKind::Cpus:
      return "CPUs";
    case BlockerKind::Nodes:
      return tr_later("Nodes");
    default:
      return blocker.code;
  }
}

/// "Resources 7/8": of 8 that it needs there are 7.
std::string brief_blocker(const api::BlockerView& blocker) {
  if (blocker.kind == BlockerKind::Suspended) return blocker.text;
  const std::string text = tr(brief_word(blocker));
  if (blocker.kind == BlockerKind::Priority && !blocker.jobs.empty()) {
    return tr_format("behind job {}", blocker.jobs.front().value);
  }
  if (blocker.need && blocker.available) {
    return fmt::format("{} {}/{}",
                       text,
                       amount_text(blocker.kind, *blocker.available),
                       amount_text(blocker.kind, *blocker.need));
  }
  return blocker.jobs.empty() ? text : text + " " + numbers_of(blocker.jobs);
}

/// What part it has of each of its GPUs: "0.5", "shared"; "" of whole ones and of none.
std::string part_of_gpus(const Request& request) {
  const GpuRequest asked = gpu_request_of(request);
  if (asked.see_all || asked.gpus == 0) return "";
  if (asked.share != Share::whole()) return share_text(asked.share);
  return request.mode == GpuMode::TimeSlice ? tr("shared") : "";
}

/// Of one that runs: "4 (0.5, GPU memory 20G/8G)".
std::string where_text(const api::JobView& job) {
  const std::string where = job.node_list.empty() ? "-" : printable(job.node_list);
  std::vector<std::string> remarks;
  if (std::string part = part_of_gpus(job.spec.request); !part.empty()) {
    remarks.push_back(std::move(part));
  }
  const auto over = std::ranges::find_if(job.gpu_memory, &GpuMemoryUse::is_over);
  if (job.status == Status::Suspended && !job.blockers.empty()) {
    remarks.push_back(printable(brief_blocker(job.blockers.front())));
  } else if (over != job.gpu_memory.end()) {
    remarks.push_back(tr_format(
        "GPU memory {}/{}", memory_text(over->used, over->reserved), memory_text(over->reserved)));
  } else if (job.move) {
    remarks.push_back(tr_format("to {}", job.move->target));
  } else if (job.lends) {
    remarks.push_back(tr("lent"));
  } else if (const auto idle = long_idle(job); idle > std::chrono::seconds(0)) {
    remarks.push_back(tr_format("idle {}", brief_duration(idle)));
  }
  return remarks.empty() ? where : fmt::format("{} ({})", where, join(remarks, tr(", ")));
}

std::string brief_end(const api::JobView& job) {
  const Outcome& outcome = *job.outcome;
  if (outcome.reason == EndReason::Exited) return tr_format("exit {}", outcome.exit_code);
  if (outcome.reason == EndReason::Signalled) return tr_format("signal {}", outcome.signal);
  return printable(job.reason);
}

}  // namespace

std::string brief_where_or_why(const api::JobView& job) {
  if (is_active(job.status)) return where_text(job);
  if (is_pending(job.status)) {
    if (job.blockers.empty()) return "-";
    return fmt::format("({})", printable(brief_blocker(job.blockers.front())));
  }
  if (job.status == Status::Finished || !job.outcome) return "-";
  return fmt::format("({})", brief_end(job));
}

std::vector<std::string> briefer_why(const api::JobView& job) {
  if (!is_pending(job.status) || job.blockers.empty()) return {};
  const api::BlockerView& blocker = job.blockers.front();
  if (blocker.jobs.empty()) return {};
  if (blocker.kind == BlockerKind::Priority) {
    return {tr_format("(behind {})", blocker.jobs.front().value)};
  }
  if (blocker.kind != BlockerKind::Dependency) return {};
  if (blocker.never) {
    return {tr_format("(never, after {})", numbers_of(blocker.jobs)), tr("(never)")};
  }
  return {tr_format("(after {})", numbers_of(blocker.jobs))};
}

std::string brief_gpus(const Request& request) {
  GpuRequest asked = gpu_request_of(request);
  if (asked.see_all) return "all";
  if (asked.gpus == 0) return "-";
  const int devices = asked.gpus * request.nodes;
  if (asked.share == Share::whole()) {
    return request.mode == GpuMode::TimeSlice ? tr_format("{} shared", devices)
                                              : fmt::format("{}", devices);
  }
  const std::string share = share_text(asked.share);
  return devices == 1 ? share : fmt::format("{}x{}", devices, share);
}

Style style_of(Status status) {
  switch (status_info(status).tone) {
    case Tone::Good:
      return Style::Green;
    case Tone::Bad:
      return Style::Red;
    case Tone::Attention:
      return Style::Yellow;
    case Tone::Past:
      return Style::Grey;
    case Tone::Plain:
      break;
  }
  return Style::Plain;
}

}  // namespace gflow::cli
