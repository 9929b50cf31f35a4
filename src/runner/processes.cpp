// SPDX-License-Identifier: Apache-2.0
#include "runner/processes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "attempt/text_fields.h"
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

/// By its real user; empty if it has ended.
std::optional<std::uint32_t> user_of(int pid) {
  const auto text = os::read_file(proc_file(pid, "status"));
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    std::string_view rest = line;
    if (attempt::take_field(rest, '\t') != "Uid:") continue;
    return attempt::number_of<std::uint32_t>(attempt::take_field(rest, '\t'));
  }
  return std::nullopt;
}

bool carries_marker(int pid, const std::string& marker) {
  const auto environment = os::read_file(proc_file(pid, "environ"));
  if (!environment) return false;
  const auto variables = split(*environment, '\0');
  return std::ranges::find(variables, marker) != variables.end();
}

/// What the job of an order left is known by: its control groups, which another user cannot leave,
/// or a variable. A process's environment is read from its memory, which its user may have laid on
/// a file system that does not answer: nobody else's is looked at, and none where it is not needed.
class Mark {
 public:
  explicit Mark(const attempt::Order& order)
      : variable_(std::string(kMarker) + "=" + order.launch_id),
        user_(order.uid.value_or(::geteuid())),
        needed_(!order.uid || order.cgroups.empty()) {}

  [[nodiscard]] bool is_on(int pid) const {
    return needed_ && user_of(pid) == user_ && carries_marker(pid, variable_);
  }

 private:
  std::string variable_;
  std::uint32_t user_;
  bool needed_;
};

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
  const Mark mark(order);
  const std::set<int> members = cgroup_members(order);
  std::vector<std::pair<int, os::Fd>> held;
  for (const int pid : all_pids()) {
    if (pid == ::getpid() || (!members.contains(pid) && !mark.is_on(pid))) continue;
    held.emplace_back(pid, open_process(pid));
  }
  const std::set<int> still_members = held.empty() ? std::set<int>() : cgroup_members(order);
  std::vector<os::Fd> survivors;
  for (auto& [pid, process] : held) {
    if (!process.valid() || has_ended(process)) continue;
    if (!still_members.contains(pid) && !mark.is_on(pid)) continue;
    survivors.push_back(std::move(process));
  }
  return survivors;
}

}  // namespace gflow::runner
