// SPDX-License-Identifier: Apache-2.0
#include "core/blocker.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace gflow {
namespace {

// A reason is one column of a table: a list longer than this is cut and counted.
constexpr std::size_t kMaxListed = 8;

/// "3,5", or "1,2,3,4,5,6,7,8 and 92 more".
std::string list_text(const std::vector<std::uint64_t>& numbers) {
  const std::size_t shown = std::min(numbers.size(), kMaxListed);
  std::string text = fmt::format(
      "{}", fmt::join(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(shown), ","));
  if (numbers.size() > shown) text += fmt::format(" and {} more", numbers.size() - shown);
  return text;
}

/// "; GPU 3 used outside gflow", "; GPUs 2,3 not usable", or "" for no such device.
std::string devices_text(const std::vector<std::uint64_t>& gpus, std::string_view what) {
  if (gpus.empty()) return "";
  return fmt::format("; {} {} {}", gpus.size() == 1 ? "GPU" : "GPUs", list_text(gpus), what);
}

std::string unusable_text(const std::vector<blocker::Unusable>& unusable) {
  std::vector<std::uint64_t> foreign;
  std::vector<std::uint64_t> broken;
  std::vector<std::uint64_t> drained;
  for (const blocker::Unusable& device : unusable) {
    auto& list = !device.drained.empty() ? drained : device.trouble.empty() ? foreign : broken;
    list.push_back(static_cast<std::uint64_t>(device.gpu));
  }
  return devices_text(foreign, "used outside gflow") + devices_text(broken, "not usable") +
         devices_text(drained, "drained");
}

/// " on n2"; "" where there is only one node.
std::string on_node(const std::string& node) {
  return node.empty() ? "" : " on " + printable(node);
}

/// "Need 4 GPUs, only 1 available", "Need 1 CPU, none available on n2".
std::string shortage_text(int need, int available, std::string_view unit, const std::string& node) {
  const std::string wanted = fmt::format("Need {} {}{}", need, unit, need == 1 ? "" : "s");
  if (available <= 0) return wanted + ", none available" + on_node(node);
  return fmt::format("{}, only {} available{}", wanted, available, on_node(node));
}

std::string wait_text(std::chrono::milliseconds wait) {
  return duration_text(std::chrono::ceil<std::chrono::seconds>(wait));
}

struct CodeVisitor {
  std::string_view operator()(const blocker::OnHold&) const { return "Held"; }
  std::string_view operator()(const blocker::BeginTime&) const { return "BeginTime"; }
  std::string_view operator()(const blocker::Dependency& b) const {
    return b.never ? "DependencyNeverSatisfied" : "Dependency";
  }
  std::string_view operator()(const blocker::Gpus&) const { return "Resources"; }
  std::string_view operator()(const blocker::GpuMemory&) const { return "GpuMemory"; }
  std::string_view operator()(const blocker::GpuShare&) const { return "Resources"; }
  std::string_view operator()(const blocker::Nodes&) const { return "Resources"; }
  std::string_view operator()(const blocker::NodeClosed& b) const {
    return b.closed == blocker::Closed::Drained ? "Drained" : "NodeNotReady";
  }
  std::string_view operator()(const blocker::NodeUnhealthy&) const { return "NodeUnhealthy"; }
  std::string_view operator()(const blocker::Preemption&) const { return "Preemption"; }
  std::string_view operator()(const blocker::HostMemory&) const { return "Resources"; }
  std::string_view operator()(const blocker::Cpus&) const { return "Resources"; }
  std::string_view operator()(const blocker::Priority&) const { return "Priority"; }
  std::string_view operator()(const blocker::GroupLimit&) const { return "GroupLimit"; }
  std::string_view operator()(const blocker::LaunchBackoff&) const { return "LaunchBackoff"; }
  std::string_view operator()(const blocker::UserLimit&) const { return "UserLimit"; }
};

struct TextVisitor {
  std::string operator()(const blocker::OnHold& b) const {
    return b.why.empty() ? "JobHeldUser" : fmt::format("JobHeld: {}", printable(b.why));
  }
  std::string operator()(const blocker::BeginTime& b) const {
    return fmt::format("BeginTime: {}", rfc3339(b.at));
  }
  std::string operator()(const blocker::Dependency& b) const {
    const std::string_view code = CodeVisitor{}(b);
    if (b.waiting_for.empty()) return std::string(code);
    std::vector<std::uint64_t> jobs;
    for (const JobId id : b.waiting_for) jobs.push_back(id.value);
    const bool any = b.mode == DependencyMode::Any && jobs.size() > 1;
    return fmt::format("{}: {}{}", code, any ? "any of " : "", list_text(jobs));
  }
  std::string operator()(const blocker::Gpus& b) const {
    const std::string others = unusable_text(b.unusable);
    const bool partly = b.available > 0 && b.available < b.need;
    const std::string unit = b.kind.empty() ? "GPU" : b.kind + " GPU";
    if (partly) return "Resources: " + shortage_text(b.need, b.available, unit, b.node) + others;
    return others.empty() ? "Resources" : "Resources: " + others.substr(2);
  }
  std::string operator()(const blocker::GpuMemory& b) const {
    const std::string where = b.gpus == 1 ? "a GPU" : fmt::format("each of {} GPUs", b.gpus);
    return fmt::format("GpuMemory: Need {} free on {}, {} short{}",
                       memory_text(b.need),
                       where,
                       memory_text(b.missing),
                       on_node(b.node));
  }
  std::string operator()(const blocker::GpuShare& b) const {
    return fmt::format("Resources: Need {} of a GPU, {} short{}",
                       share_text(b.need),
                       share_text(b.missing),
                       on_node(b.node));
  }
  std::string operator()(const blocker::Nodes& b) const {
    return "Resources: " + shortage_text(b.need, b.available, "node", "");
  }
  std::string operator()(const blocker::NodeClosed& b) const {
    const std::string_view code = CodeVisitor{}(b);
    if (b.reason.empty()) return std::string(code);
    return fmt::format("{}: {}", code, printable(b.reason));
  }
  std::string operator()(const blocker::NodeUnhealthy& b) const {
    return fmt::format("NodeUnhealthy: {}, {}",
                       printable(b.reason),
                       b.wait.count() > 0 ? fmt::format("next try in {}", wait_text(b.wait))
                                          : "a launch is being tried");
  }
  std::string operator()(const blocker::Preemption& b) const {
    std::vector<std::uint64_t> jobs;
    for (const JobId id : b.jobs) jobs.push_back(id.value);
    return fmt::format(
        "Preemption: waiting for job{} {}", jobs.size() == 1 ? "" : "s", list_text(jobs));
  }
  std::string operator()(const blocker::HostMemory& b) const {
    const std::string wanted = fmt::format("Resources: Need {} memory, ", memory_text(b.need));
    if (b.available.bytes <= 0) return wanted + "none available" + on_node(b.node);
    return fmt::format("{}only {} available{}", wanted, memory_text(b.available), on_node(b.node));
  }
  std::string operator()(const blocker::Cpus& b) const {
    return "Resources: " + shortage_text(b.need, b.available, "CPU", b.node);
  }
  std::string operator()(const blocker::Priority& b) const {
    if (!b.behind.is_set()) return "Priority";
    return fmt::format("Priority: behind job {}", b.behind.value);
  }
  std::string operator()(const blocker::GroupLimit& b) const {
    return fmt::format("GroupLimit: at most {} of group {} at once", b.limit, printable(b.group));
  }
  std::string operator()(const blocker::LaunchBackoff& b) const {
    return fmt::format("LaunchBackoff: {}, try {} in {}",
                       b.why.empty() ? "not started" : printable(b.why),
                       b.failures + 1,
                       wait_text(b.wait));
  }
  std::string operator()(const blocker::UserLimit& b) const {
    return fmt::format(
        "UserLimit: at most {} of its user's jobs that reserve no GPUs and no CPUs at once",
        b.limit);
  }
};

}  // namespace

std::string_view blocker_code(const Blocker& blocker) { return std::visit(CodeVisitor{}, blocker); }

std::string blocker_text(const Blocker& blocker) { return std::visit(TextVisitor{}, blocker); }

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
