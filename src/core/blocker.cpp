// SPDX-License-Identifier: Apache-2.0
#include "core/blocker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/kept_sentence.h"
#include "base/text.h"
#include "base/translate.h"

namespace gflow {
namespace {

// A reason is one column of a table: a list longer than this is cut and counted.
constexpr std::size_t kMaxListed = 8;

/// "3,5", or "1,2,3,4,5,6,7,8 and 92 more".
std::string list_text(const std::vector<std::uint64_t>& numbers) {
  const std::size_t shown = std::min(numbers.size(), kMaxListed);
  std::string text = fmt::format(
      "{}", fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), ","));
  if (numbers.size() > shown) text += tr_format(" and {} more", numbers.size() - shown);
  return text;
}

/// The job that alone is on a device it does not hold; empty if none is, or others are, too.
std::optional<JobId> intruder_on(const blocker::Unusable& device) {
  if (device.processes.empty()) return std::nullopt;
  const std::optional<JobId> job = device.processes.front().job;
  const bool is_alone = std::ranges::all_of(
      device.processes, [job](const DeviceProcess& process) { return process.job == job; });
  return is_alone ? job : std::nullopt;
}

/// "; GPU 3 used outside gflow; GPUs 4,5 not usable", or "" for no such device.
std::string unusable_text(const std::vector<blocker::Unusable>& unusable) {
  std::vector<std::uint64_t> foreign;
  std::vector<std::uint64_t> broken;
  std::vector<std::uint64_t> drained;
  std::string intruders;
  for (const blocker::Unusable& device : unusable) {
    if (const auto job = intruder_on(device); job && !device.drained && device.trouble.empty()) {
      intruders +=
          tr_format("; GPU {} in use by job {}, which does not hold it", device.gpu, job->value);
      continue;
    }
    auto& list = device.drained ? drained : device.trouble.empty() ? foreign : broken;
    list.push_back(static_cast<std::uint64_t>(device.gpu));
  }
  std::string out;
  if (!foreign.empty()) {
    out += tr_count(foreign.size(),
                    "; GPU {} used outside gflow",
                    "; GPUs {} used outside gflow",
                    list_text(foreign));
  }
  if (!broken.empty()) {
    out +=
        tr_count(broken.size(), "; GPU {} not usable", "; GPUs {} not usable", list_text(broken));
  }
  if (!drained.empty()) {
    out += tr_count(drained.size(), "; GPU {} drained", "; GPUs {} drained", list_text(drained));
  }
  return out + intruders;
}

/// What unusable_text() says, standing alone.
std::string_view without_separator(std::string_view text) {
  const std::string separator = tr("; ");
  if (text.starts_with(separator)) text.remove_prefix(separator.size());
  return text;
}

/// " on n2"; "" where there is only one node.
std::string on_node(const std::string& node) {
  return node.empty() ? "" : tr_format(" on {}", printable(node));
}

/// "Resources: Need 1 CPU, none available on n2".
std::string none_text(const std::string& wanted, const std::string& node) {
  return tr_format("Resources: {}", tr_format("{}, none available", wanted) + on_node(node));
}

std::uint64_t count(int number) { return static_cast<std::uint64_t>(std::max(number, 0)); }

std::string wait_text(std::chrono::milliseconds wait) {
  return duration_text(std::chrono::ceil<std::chrono::seconds>(wait));
}

struct CodeVisitor {
  std::string_view operator()(const blocker::OnHold&) const { return tr_later("Held"); }
  std::string_view operator()(const blocker::BeginTime&) const { return tr_later("BeginTime"); }
  std::string_view operator()(const blocker::Dependency& b) const {
    return b.never ? tr_later("DependencyNeverSatisfied") : tr_later("Dependency");
  }
  std::string_view operator()(const blocker::Gpus&) const { return tr_later("Resources"); }
  std::string_view operator()(const blocker::GpuMemory&) const { return tr_later("GpuMemory"); }
  std::string_view operator()(const blocker::GpuShare&) const { return tr_later("Resources"); }
  std::string_view operator()(const blocker::Nodes&) const { return tr_later("Resources"); }
  std::string_view operator()(const blocker::NodeClosed& b) const {
    return b.closed == blocker::Closed::Drained ? tr_later("Drained") : tr_later("NodeNotReady");
  }
  std::string_view operator()(const blocker::NodeUnhealthy&) const {
    return tr_later("NodeUnhealthy");
  }
  std::string_view operator()(const blocker::Preemption&) const { return tr_later("Preemption"); }
  std::string_view operator()(const blocker::HostMemory&) const { return tr_later("Resources"); }
  std::string_view operator()(const blocker::Cpus&) const { return tr_later("Resources"); }
  std::string_view operator()(const blocker::Priority&) const { return tr_later("Priority"); }
  std::string_view operator()(const blocker::GroupLimit&) const { return tr_later("GroupLimit"); }
  std::string_view operator()(const blocker::LaunchBackoff&) const {
    return tr_later("LaunchBackoff");
  }
  std::string_view operator()(const blocker::UserLimit&) const { return tr_later("UserLimit"); }
  std::string_view operator()(const blocker::Suspended&) const { return tr_later("Suspended"); }
  std::string_view operator()(const blocker::GpuLimit&) const { return tr_later("GpuLimit"); }
  std::string_view operator()(const blocker::Gang&) const { return tr_later("Gang"); }
  std::string_view operator()(const blocker::Slice&) const { return tr_later("Slice"); }
};

struct TextVisitor {
  std::string operator()(const blocker::OnHold& b) const {
    return b.why.empty() ? tr("JobHeldUser")
                         : tr_format("JobHeld: {}", printable(kept_text(b.why)));
  }
  std::string operator()(const blocker::BeginTime& b) const {
    return tr_format("BeginTime: {}", rfc3339(b.at));
  }
  std::string operator()(const blocker::Dependency& b) const {
    const std::string_view code = CodeVisitor{}(b);
    if (b.waiting_for.empty()) return tr(code);
    std::vector<std::uint64_t> jobs;
    for (const JobId id : b.waiting_for) jobs.push_back(id.value);
    const bool any = b.mode == DependencyMode::Any && jobs.size() > 1;
    return any ? tr_format("{}: any of {}", tr(code), list_text(jobs))
               : tr_format("{}: {}", tr(code), list_text(jobs));
  }
  std::string operator()(const blocker::Gpus& b) const {
    const std::string others = unusable_text(b.unusable);
    const bool partly = b.available > 0 && b.available < b.need;
    if (partly) {
      const std::string shortage = gpu_shortage_text(b.need, b.available, b.kind);
      return tr_format("Resources: {}", shortage + on_node(b.node)) + others;
    }
    if (others.empty()) return tr("Resources");
    return tr_format("Resources: {}", without_separator(others));
  }
  std::string operator()(const blocker::GpuMemory& b) const {
    const std::string where = b.gpus == 1 ? tr("a GPU") : tr_format("each of {} GPUs", b.gpus);
    return tr_format("GpuMemory: Need {} free on {}, {} short{}",
                     memory_text(b.need),
                     where,
                     memory_text(b.missing),
                     on_node(b.node));
  }
  std::string operator()(const blocker::GpuShare& b) const {
    return tr_format("Resources: Need {} of a GPU, {} short{}",
                     share_text(b.need),
                     share_text(b.missing),
                     on_node(b.node));
  }
  std::string operator()(const blocker::Nodes& b) const {
    if (b.available <= 0) {
      return none_text(tr_count(count(b.need), "Need {} node", "Need {} nodes", b.need), "");
    }
    return tr_format("Resources: {}",
                     tr_count(count(b.need),
                              "Need {} node, only {} available",
                              "Need {} nodes, only {} available",
                              b.need,
                              b.available));
  }
  std::string operator()(const blocker::NodeClosed& b) const {
    const std::string_view code = CodeVisitor{}(b);
    if (b.reason.empty()) return tr(code);
    // A drain has the words of a person, whatever they are.
    const bool is_drained = b.closed == blocker::Closed::Drained;
    return tr_format("{}: {}", tr(code), printable(is_drained ? b.reason : kept_text(b.reason)));
  }
  std::string operator()(const blocker::NodeUnhealthy& b) const {
    return tr_format("NodeUnhealthy: {}, {}",
                     printable(kept_text(b.reason)),
                     b.wait.count() > 0 ? tr_format("next try in {}", wait_text(b.wait))
                                        : tr("a launch is being tried"));
  }
  std::string operator()(const blocker::Preemption& b) const {
    if (b.jobs.empty()) return tr("Preemption: waiting for other jobs");
    std::vector<std::uint64_t> jobs;
    for (const JobId id : b.jobs) jobs.push_back(id.value);
    return tr_count(jobs.size(),
                    "Preemption: waiting for job {}",
                    "Preemption: waiting for jobs {}",
                    list_text(jobs));
  }
  std::string operator()(const blocker::HostMemory& b) const {
    const std::string need = memory_text(b.need, b.available);
    if (b.available.bytes <= 0) return none_text(tr_format("Need {} memory", need), b.node);
    return tr_format(
        "Resources: {}",
        tr_format("Need {} memory, only {} available", need, memory_text(b.available)) +
            on_node(b.node));
  }
  std::string operator()(const blocker::Cpus& b) const {
    if (b.available <= 0) {
      return none_text(tr_count(count(b.need), "Need {} CPU", "Need {} CPUs", b.need), b.node);
    }
    return tr_format("Resources: {}",
                     tr_count(count(b.need),
                              "Need {} CPU, only {} available",
                              "Need {} CPUs, only {} available",
                              b.need,
                              b.available) +
                         on_node(b.node));
  }
  std::string operator()(const blocker::Priority& b) const {
    if (!b.behind.is_set()) return tr("Priority");
    return tr_format("Priority: behind job {}", b.behind.value);
  }
  std::string operator()(const blocker::GroupLimit& b) const {
    if (b.group.empty()) return tr_format("GroupLimit: at most {} of its group at once", b.limit);
    return tr_format("GroupLimit: at most {} of group {} at once", b.limit, printable(b.group));
  }
  std::string operator()(const blocker::LaunchBackoff& b) const {
    return tr_format("LaunchBackoff: {}, try {} in {}",
                     b.why.empty() ? tr("not started") : printable(kept_text(b.why)),
                     b.failures + 1,
                     wait_text(b.wait));
  }
  std::string operator()(const blocker::UserLimit& b) const {
    return tr_format(
        "UserLimit: at most {} of its user's jobs that reserve no GPUs and no CPUs at once",
        b.limit);
  }
  std::string operator()(const blocker::Suspended& b) const {
    return tr_format("Suspended by {}", printable(b.by));
  }
  std::string operator()(const blocker::GpuLimit& b) const {
    if (b.need > b.limit) {
      return tr_format("GpuLimit: Need {} GPUs, its user may hold {} at once",
                       share_text(b.need),
                       share_text(b.limit));
    }
    if (b.need == Share::whole()) {
      return tr_format("GpuLimit: Need 1 GPU, its user holds {} and may hold {} at once",
                       share_text(b.held),
                       share_text(b.limit));
    }
    return tr_format("GpuLimit: Need {} GPUs, its user holds {} and may hold {} at once",
                     share_text(b.need),
                     share_text(b.held),
                     share_text(b.limit));
  }
  std::string operator()(const blocker::Gang& b) const {
    if (b.waiting < b.need) {
      return tr_format("Gang: {} jobs start together, of which {} wait", b.need, b.waiting);
    }
    if (!b.room) return tr_format("Gang: {} jobs start together", b.need);
    return tr_format("Gang: {} jobs start together, and there is room for {}", b.need, *b.room);
  }
  std::string operator()(const blocker::Slice& b) const {
    if (b.is_made && b.trouble.empty()) return tr_format("Slice: {} is being made", b.profile);
    if (b.is_made)
      return tr_format("Slice: {} is not made yet: {}", b.profile, printable(kept_text(b.trouble)));
    if (b.trouble.empty()) return tr_format("Slice: no GPU has room for {}", b.profile);
    return tr_format("Slice: {} is not made: {}", b.profile, printable(kept_text(b.trouble)));
  }
};

}  // namespace

std::string_view blocker_code(const Blocker& blocker) { return std::visit(CodeVisitor{}, blocker); }

std::string blocker_text(const Blocker& blocker) { return std::visit(TextVisitor{}, blocker); }

std::string gpu_shortage_text(std::int64_t need, std::int64_t available, const std::string& kind) {
  const auto number = static_cast<std::uint64_t>(std::max<std::int64_t>(need, 0));
  const std::string sort = kind.empty() ? "" : kind + " ";
  if (available > 0) {
    return tr_count(number,
                    "Need {0} {2}GPU, only {1} available",
                    "Need {0} {2}GPUs, only {1} available",
                    need,
                    available,
                    sort);
  }
  return tr_format("{}, none available",
                   tr_count(number, "Need {} {}GPU", "Need {} {}GPUs", need, sort));
}

std::string reason_text(const std::vector<Blocker>& blockers) {
  return blockers.empty() ? "" : blocker_text(blockers.front());
}

Blocker public_part(Blocker blocker) {
  if (auto* hold = std::get_if<blocker::OnHold>(&blocker)) hold->why = public_part(hold->why);
  if (auto* pause = std::get_if<blocker::LaunchBackoff>(&blocker)) {
    pause->why = public_part(pause->why);
  }
  return blocker;
}

}  // namespace gflow
