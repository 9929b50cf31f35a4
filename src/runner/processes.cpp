// SPDX-License-Identifier: Apache-2.0
#include "runner/processes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/text.h"
#include "base/text_fields.h"
#include "os/file.h"

namespace gflow::runner {
namespace {

std::string proc_file(int pid, const char* name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

Result<std::vector<int>> all_pids() {
  std::vector<int> pids;
  for (const std::string& name : GF_TRY(os::names_in("/proc"))) {
    if (const auto pid = parse_number(name)) pids.push_back(static_cast<int>(*pid));
  }
  return pids;
}

Result<std::set<int>> cgroup_members(const Traces& traces) {
  std::set<int> members;
  for (const std::string& cgroup : traces.cgroups) {
    const auto text = GF_TRY(os::read_if_exists(cgroup + "/cgroup.procs"));
    if (!text) continue;  // the group is gone, and with it its processes
    const auto pids = parse_pids(*text);
    members.insert(pids.begin(), pids.end());
  }
  return members;
}

/// Of a control group and those below it.
Result<void> add_members(const std::string& cgroup, std::set<int>& members) {
  const auto text = GF_TRY(os::read_if_exists(cgroup + "/cgroup.procs"));
  if (!text) return {};
  const auto pids = parse_pids(*text);
  members.insert(pids.begin(), pids.end());
  for (const std::string& name : GF_TRY(os::names_in(cgroup))) {
    const std::string inner = cgroup + "/" + name;
    if (os::is_directory(inner)) GF_CHECK(add_members(inner, members));
  }
  return {};
}

/// Those of a control group that stand because it is frozen.
Result<std::set<int>> frozen_members(const std::string& cgroup) {
  std::set<int> members;
  if (cgroup.empty()) return members;
  const auto events = GF_TRY(os::read_if_exists(cgroup + "/cgroup.events"));
  if (!events || keyed_value(*events, "frozen") != 1) return members;
  GF_CHECK(add_members(cgroup, members));
  return members;
}

bool is_state_of_standing(char state) {
  constexpr std::string_view kStates = "TtDZX";
  return kStates.find(state) != std::string_view::npos;
}

/// Its state is that of its first thread. A signal stops all of them, or nobody would see that that
/// one has ended.
Result<bool> stands(const ProcessFacts& process) {
  if (!process.has_dead_leader()) return is_state_of_standing(process.state);
  const std::string threads = proc_file(process.pid, "task");
  for (const std::string& thread : GF_TRY(os::names_in(threads))) {
    const auto text = GF_TRY(os::read_if_exists(threads + "/" + thread + "/stat"));
    const auto facts = parse_proc_stat(text.value_or(""));
    if (facts && !is_state_of_standing(facts->state)) return false;
  }
  return true;
}

/// The path of a process's program; "" if it has none (it ends), or another user's that may not be
/// known.
Result<std::string> program_of(const std::string& process) {
  std::array<char, 4096> buffer{};
  const std::string link = "/proc/" + process + "/exe";
  const ssize_t size = ::readlink(link.c_str(), buffer.data(), buffer.size());
  if (size >= 0) return std::string(buffer.data(), static_cast<std::size_t>(size));
  if (errno == ENOENT || errno == ESRCH || errno == EACCES || errno == EPERM) return std::string();
  return os::errno_error("look at", link);
}

/// Supervisors and daemons; the commands of the suite may be run by jobs as well.
bool is_name_of_gflow(std::string_view name) {
  return name.starts_with("gflowd") || name.starts_with("gflow-");
}

/// Whether it runs as who runs the daemon, as its supervisors do: what a user calls their programs
/// proves nothing. One that is gone is nobody's.
Result<bool> is_of_own_user(int pid) {
  const auto status = GF_TRY(os::read_if_exists(proc_file(pid, "status")));
  return !status || real_user(*status) == ::getuid();
}

/// Whether a process is there that is none of gflow's programs, nor a copy of this one that has not
/// become one yet. Of one that ends only its name is left.
Result<bool> is_strange(int pid) {
  const std::string program = GF_TRY(program_of(std::to_string(pid)));
  if (!program.empty()) {
    const auto name = std::string_view(program).substr(program.rfind('/') + 1);
    if (!is_name_of_gflow(name) && program != GF_TRY(program_of("self"))) return true;
    return !GF_TRY(is_of_own_user(pid));
  }
  const auto name = GF_TRY(os::read_if_exists(proc_file(pid, "comm")));
  if (!name) return false;
  if (!is_name_of_gflow(*name) && *name != GF_TRY(os::read_file("/proc/self/comm"))) return true;
  return !GF_TRY(is_of_own_user(pid));
}

/// Whether an orphan of a shim is above it, or it is one itself. Reading again where the tree
/// changed meanwhile: parents end, and what they leave comes to this process, too.
Result<bool> is_below_orphan(int pid) {
  constexpr int kMaxSteps = 100'000;
  int at = pid;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    const auto facts = GF_TRY(os::find_process(at));
    if (!facts && at == pid) return false;
    if (!facts) {
      at = pid;
    } else if (facts->parent == ::getpid()) {
      const bool strange = GF_TRY(is_strange(at));
      // Nobody else takes note of their end.
      if (strange && at == pid && facts->is_dead()) (void)::waitpid(pid, nullptr, WNOHANG);
      return strange;
    } else if (facts->parent <= 1) {
      return false;
    } else {
      at = facts->parent;
    }
  }
  return false;
}

/// Whether a process carries a mark. A daemon that runs within a job hands the job's on to its
/// supervisors, which are none of it.
Result<bool> carries_mark(int pid, std::uint64_t mark) {
  const auto limits = GF_TRY(os::read_if_exists(proc_file(pid, "limits")));
  if (!limits || file_lock_limit(*limits) != mark) return false;
  return is_strange(pid);
}

/// Knows the processes of one attempt: by its control groups, which another user cannot leave, by
/// its mark, which nobody but root can take off, or by where they stand in the tree. Nothing is
/// read that a user could have made wait.
class Recognizer {
 public:
  static Result<Recognizer> create(const Traces& traces) {
    Recognizer made;
    made.mark_ = traces.mark;
    made.members_ = GF_TRY(cgroup_members(traces));
    return made;
  }
  [[nodiscard]] Result<bool> knows(int pid) const {
    if (pid == ::getpid()) return false;
    if (members_.contains(pid)) return true;
    if (mark_ != 0 && GF_TRY(carries_mark(pid, mark_))) return true;
    return is_below_orphan(pid);
  }

 private:
  std::uint64_t mark_ = 0;
  std::set<int> members_;
};

}  // namespace

Result<os::Fd> open_process(int pid) {
  os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.valid() || errno == ESRCH) return process;
  return os::errno_error("watch process " + std::to_string(pid));
}

Result<os::Fd> open_to_watch(int pid) {
  GF_CHECK(os::check_descriptors(1 + kDescriptorsLeft));
  return open_process(pid);
}

bool has_ended(const os::Fd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
}

Result<std::vector<ProcessFacts>> processes_below(int supervisor) {
  std::vector<ProcessFacts> all;
  for (const int pid : GF_TRY(all_pids())) {
    if (const auto facts = GF_TRY(os::find_process(pid))) all.push_back(*facts);
  }
  std::vector<ProcessFacts> below = descendants_of(supervisor, all);
  std::erase_if(below, [](const ProcessFacts& process) { return process.is_dead(); });
  return below;
}

Result<bool> stands_still(int supervisor, const std::string& freeze_cgroup) {
  const std::set<int> frozen = GF_TRY(frozen_members(freeze_cgroup));
  for (const ProcessFacts& process : GF_TRY(processes_below(supervisor))) {
    if (!frozen.contains(process.pid) && !GF_TRY(stands(process))) return false;
  }
  return true;
}

Traces traces_of(const attempt::Order& order) { return {order.mark, order.cgroups}; }

Result<std::vector<os::Fd>> survivors_of(const Traces& traces) {
  const Recognizer before = GF_TRY(Recognizer::create(traces));
  std::vector<std::pair<int, os::Fd>> held;
  for (const int pid : GF_TRY(all_pids())) {
    if (GF_TRY(before.knows(pid))) held.emplace_back(pid, GF_TRY(open_process(pid)));
  }
  std::vector<os::Fd> survivors;
  if (held.empty()) return survivors;
  const Recognizer after = GF_TRY(Recognizer::create(traces));
  for (auto& [pid, process] : held) {
    if (!process.valid() || has_ended(process)) continue;
    if (GF_TRY(after.knows(pid))) survivors.push_back(std::move(process));
  }
  return survivors;
}

}  // namespace gflow::runner
