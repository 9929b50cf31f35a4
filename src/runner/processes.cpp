// SPDX-License-Identifier: Apache-2.0
#include "runner/processes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "os/file.h"

namespace gflow::runner {
namespace {

std::string proc_file(int pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

std::vector<int> all_pids() {
  std::vector<int> pids;
  for (const std::string& name : os::names_in("/proc").value_or(std::vector<std::string>{})) {
    if (const auto pid = parse_number(name)) pids.push_back(static_cast<int>(*pid));
  }
  return pids;
}

std::set<int> cgroup_members(const attempt::Order& order) {
  std::set<int> members;
  for (const std::string& cgroup : order.cgroups) {
    const auto text = os::read_file(cgroup + "/cgroup.procs");
    if (!text) continue;  // the group is gone, and with it its processes
    const auto pids = attempt::parse_pids(*text);
    members.insert(pids.begin(), pids.end());
  }
  return members;
}

bool carries_marker(int pid, const std::string& marker) {
  const auto environment = os::read_file(proc_file(pid, "environ"));
  if (!environment) return false;
  const auto variables = split(*environment, '\0');
  return std::ranges::find(variables, marker) != variables.end();
}

}  // namespace

std::optional<attempt::ProcessFacts> process_facts(int pid) {
  const auto text = os::read_file(proc_file(pid, "stat"));
  if (!text) return std::nullopt;
  return attempt::parse_proc_stat(*text);
}

os::Fd open_process(int pid) { return os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

bool has_ended(const os::Fd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

std::vector<os::Fd> survivors_of(const attempt::Order& order) {
  const std::string marker = std::string(kMarker) + "=" + order.launch_id;
  const std::set<int> members = cgroup_members(order);
  std::vector<std::pair<int, os::Fd>> held;
  for (const int pid : all_pids()) {
    if (pid == ::getpid() || (!members.contains(pid) && !carries_marker(pid, marker))) continue;
    held.emplace_back(pid, open_process(pid));
  }
  const std::set<int> still_members = held.empty() ? std::set<int>() : cgroup_members(order);
  std::vector<os::Fd> survivors;
  for (auto& [pid, process] : held) {
    if (!process.valid() || has_ended(process)) continue;
    if (!still_members.contains(pid) && !carries_marker(pid, marker)) continue;
    survivors.push_back(std::move(process));
  }
  return survivors;
}

}  // namespace gflow::runner
