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

using attempt::ProcessFacts;

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

/// By its real user; empty if it has ended.
Result<std::optional<std::uint32_t>> user_of(int pid) {
  const auto text = GF_TRY(os::read_if_exists(proc_file(pid, "status")));
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    std::string_view rest = line;
    if (attempt::take_field(rest, '\t') != "Uid:") continue;
    return attempt::number_of<std::uint32_t>(attempt::take_field(rest, '\t'));
  }
  return std::nullopt;
}

Result<bool> carries_marker(int pid, const std::string& marker) {
  auto environment = os::read_if_exists(proc_file(pid, "environ"));
  // Only processes of other users are closed to us, and a daemon that starts those is root.
  if (!environment && environment.error().code == Code::Permission) return false;
  if (!environment) return std::unexpected(environment.error());
  if (!*environment) return false;
  const auto variables = split(**environment, '\0');
  return std::ranges::find(variables, marker) != variables.end();
}

std::string executable_of(const std::string& process) {
  std::array<char, 4096> buffer{};
  const ssize_t size =
      ::readlink(("/proc/" + process + "/exe").c_str(), buffer.data(), buffer.size());
  return size <= 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(size));
}

/// Whether a child of this process is none of gflow's programs and no copy of this one: an orphan
/// of a shim. Of a dead one only its name is left.
bool is_strange(const ProcessFacts& child) {
  if (child.is_dead()) {
    const auto name = os::read_file(proc_file(child.pid, "comm"));
    const auto own = os::read_file("/proc/self/comm");
    return name && own && *name != *own && !name->starts_with("gflow");
  }
  const std::string program = executable_of(std::to_string(child.pid));
  if (program.empty() || program == executable_of("self")) return false;
  return !std::string_view(program).substr(program.rfind('/') + 1).starts_with("gflow");
}

/// Whether an orphan of a shim is above it, or it is one itself. Reading again where the tree
/// changed meanwhile: parents end, and what they leave comes to this process, too.
Result<bool> is_below_orphan(int pid) {
  constexpr int kMostSteps = 100'000;
  int at = pid;
  for (int steps = 0; steps < kMostSteps; ++steps) {
    const auto facts = GF_TRY(find_process(at));
    if (!facts && at == pid) return false;
    if (!facts) {
      at = pid;
    } else if (facts->parent == ::getpid()) {
      const bool strange = is_strange(*facts);
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

/// Knows the processes of one attempt: by its control groups, which another user cannot leave, by a
/// variable, or by where they stand in the tree. A process's environment is read from its memory,
/// which its user may have laid on a file system that does not answer: nobody else's is looked at,
/// and none where it is not needed.
class Recognizer {
 public:
  static Result<Recognizer> create(const Traces& traces) {
    Recognizer made;
    const bool needed = !traces.launch_id.empty() && (!traces.user || traces.cgroups.empty());
    if (needed) made.marker_ = std::string(kMarker) + "=" + traces.launch_id;
    made.user_ = traces.user.value_or(::geteuid());
    made.members_ = GF_TRY(cgroup_members(traces));
    return made;
  }
  [[nodiscard]] Result<bool> knows(int pid) const {
    if (pid == ::getpid()) return false;
    if (members_.contains(pid)) return true;
    if (!marker_.empty() && GF_TRY(user_of(pid)) == user_ && GF_TRY(carries_marker(pid, marker_))) {
      return true;
    }
    return is_below_orphan(pid);
  }

 private:
  std::string marker_;
  std::uint32_t user_ = 0;
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

Traces traces_of(const attempt::Order& order) {
  return {order.launch_id, order.uid, order.cgroups};
}

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
