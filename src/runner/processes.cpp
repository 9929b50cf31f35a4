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

#include "attempt/text_fields.h"
#include "base/text.h"
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
    const auto pids = attempt::parse_pids(*text);
    members.insert(pids.begin(), pids.end());
  }
  return members;
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
  return !status || attempt::real_user(*status) == ::getuid();
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
    const auto facts = GF_TRY(find_process(at));
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
  if (!limits || attempt::file_lock_limit(*limits) != mark) return false;
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

Result<std::optional<attempt::ProcessFacts>> find_process(int pid) {
  const auto text = GF_TRY(os::read_if_exists(proc_file(pid, "stat")));
  if (!text) return std::nullopt;
  return attempt::parse_proc_stat(*text);
}

std::optional<attempt::ProcessFacts> process_facts(int pid) {
  return find_process(pid).value_or(std::nullopt);
}

Result<os::Fd> open_process(int pid) {
  os::Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.valid() || errno == ESRCH) return process;
  return os::errno_error("watch process " + std::to_string(pid));
}

bool has_ended(const os::Fd& process) {
  pollfd wait{process.get(), POLLIN, 0};
  return ::poll(&wait, 1, 0) > 0;
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
