// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <cstdint>

#include "base/text.h"
#include "base/translate.h"
#include "cli/submit/request.h"
#include "command/times.h"
#include "core/status.h"

namespace gflow::cli {
namespace {

std::string unfinished_text(const api::BlockerView& blocker) {
  const std::uint64_t id = blocker.jobs.front().value;
  if (!blocker.end) return tr_format("job {} did not finish", id);
  return tr_format("job {} ({}) did not finish", id, status_name(*blocker.end));
}

std::string dependency_text(const api::BlockerView& blocker, bool cancelled) {
  if (blocker.jobs.empty()) return printable(blocker.text) + "\n";
  if (blocker.never) {
    const std::string why = unfinished_text(blocker);
    return cancelled ? tr_format("It would be cancelled at once: {}.\n", why)
                     : tr_format("It would never start: {}.\n", why);
  }
  std::vector<std::uint64_t> jobs;
  for (const JobId id : blocker.jobs) jobs.push_back(id.value);
  if (blocker.mode == DependencyMode::Any && jobs.size() > 1) {
    return tr_format("It would wait until one of jobs {} has finished.\n", fmt::join(jobs, ","));
  }
  return tr_count(jobs.size(),
                  "It would wait until job {} has finished.\n",
                  "It would wait until jobs {} have finished.\n",
                  fmt::join(jobs, ","));
}

}  // namespace

bool is_gate(const api::BlockerView& blocker) {
  switch (blocker.kind) {
    case BlockerKind::OnHold:
    case BlockerKind::BeginTime:
    case BlockerKind::Dependency:
    case BlockerKind::GroupLimit:
    case BlockerKind::LaunchBackoff:
    case BlockerKind::UserLimit:
    case BlockerKind::GpuLimit:
    case BlockerKind::Suspended:
      return true;
    case BlockerKind::Gpus:
    case BlockerKind::GpuMemory:
    case BlockerKind::GpuShare:
    case BlockerKind::Nodes:
    case BlockerKind::NodeClosed:
    case BlockerKind::NodeUnhealthy:
    case BlockerKind::Preemption:
    case BlockerKind::HostMemory:
    case BlockerKind::Cpus:
    case BlockerKind::Priority:
    case BlockerKind::Gang:
    case BlockerKind::Slice:
      return false;
  }
  return false;
}

std::string gates_text(const api::PlacementView& view, const Clocks& clocks) {
  std::string out;
  for (const api::BlockerView& blocker : view.blockers) {
    if (blocker.kind == BlockerKind::OnHold) {
      out += tr("It would be on hold until 'gjob release'.\n");
    } else if (blocker.kind == BlockerKind::BeginTime && blocker.at) {
      out += tr_format("It would wait until its begin time: {}.\n",
                       moment_text(*blocker.at, clocks.now, clocks.zone));
    } else if (blocker.kind == BlockerKind::Dependency) {
      out += dependency_text(blocker, view.cancelled);
    } else if (is_gate(blocker)) {
      out += tr_format("It would wait: {}.\n", printable(blocker.text));
    }
  }
  return out;
}

}  // namespace gflow::cli
