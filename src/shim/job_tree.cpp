// SPDX-License-Identifier: Apache-2.0
#include "shim/job_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ranges>
#include <set>
#include <vector>

#include "base/proc_text.h"
#include "base/text_fields.h"
#include "shim/held_process.h"
#include "shim/io.h"

namespace gflow::shim {
namespace {

std::optional<ProcessFacts> facts_of(const std::string& pid) {
  return parse_proc_stat(read_path("/proc/" + pid + "/stat").value_or(""));
}

struct CloseDir {
  void operator()(DIR* dir) const { (void)::closedir(dir); }
};

/// The names in a directory of numbers: the pids of /proc, the threads of a process.
std::vector<std::string> numbers_in(const std::string& directory) {
  const std::unique_ptr<DIR, CloseDir> open(::opendir(directory.c_str()));
  std::vector<std::string> names;
  if (open == nullptr) return names;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this directory open
  while (const dirent* entry = ::readdir(open.get())) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9') names.emplace_back(entry->d_name);
  }
  return names;
}

std::vector<ProcessFacts> descendants_by_scan() {
  std::vector<ProcessFacts> all;
  for (const std::string& pid : numbers_in("/proc")) {
    if (const auto facts = facts_of(pid)) all.push_back(*facts);
  }
  return descendants_of(::getpid(), all);
}

/// What each thread of a process has forked and is still there, and what it became the parent of.
/// Empty if the kernel does not tell (it was built without CONFIG_PROC_CHILDREN).
std::optional<std::vector<std::int32_t>> children_of(std::int32_t pid) {
  const std::string threads = "/proc/" + std::to_string(pid) + "/task/";
  std::optional<std::vector<std::int32_t>> all;
  for (const std::string& thread : numbers_in(threads)) {
    const auto text = read_path(threads + thread + "/children");
    if (!text) continue;
    if (!all) all.emplace();
    const auto pids = parse_pids(*text);
    all->insert(all->end(), pids.begin(), pids.end());
  }
  return all;
}

/// The pids below this process, parents before their children; empty if the kernel does not tell.
std::optional<std::vector<std::int32_t>> pids_below() {
  std::vector<std::int32_t> pids{::getpid()};
  std::set<std::int32_t> seen;
  for (std::size_t next = 0; next < pids.size(); ++next) {
    const auto children = children_of(pids[next]);
    if (!children && next == 0) return std::nullopt;
    for (const std::int32_t pid : children.value_or(std::vector<std::int32_t>{})) {
      if (seen.insert(pid).second) pids.push_back(pid);
    }
  }
  pids.erase(pids.begin());
  return pids;
}

/// Looks at the job's processes only: a thousand supervisors that each look at all the processes of
/// the machine keep it busy for ten seconds. One that moves up while it is looked for, as its
/// parent ends, is met in the next round: a list of children that changes while it is read may miss
/// one.
std::vector<ProcessFacts> descendants() {
  constexpr int kRounds = 8;
  std::vector<ProcessFacts> found;
  std::set<std::int32_t> known;
  for (int round = 0; round < kRounds; ++round) {
    const auto pids = pids_below();
    if (!pids) return descendants_by_scan();
    const std::size_t before = found.size();
    for (const std::int32_t pid : *pids) {
      const auto facts = known.contains(pid) ? std::nullopt : facts_of(std::to_string(pid));
      if (!facts) continue;
      known.insert(pid);
      found.push_back(*facts);
    }
    if (found.size() == before && round > 0) break;
  }
  return found;
}

/// Between reading /proc and here its pid may have gone to another one, and it may be gone.
void send_to(const ProcessFacts& process, int number) {
  const Fd held = hold_process(process.pid, process.start_time);
  (void)::syscall(SYS_pidfd_send_signal, held.get(), number, nullptr, 0);
}

/// Whether no thread of it runs. One that was told to stop while it forks becomes a parent first.
bool stands(const ProcessFacts& process) {
  const std::string threads = "/proc/" + std::to_string(process.pid) + "/task/";
  return std::ranges::none_of(numbers_in(threads), [&threads](const std::string& thread) {
    const auto facts = parse_proc_stat(read_path(threads + thread + "/stat").value_or(""));
    return facts && !facts->is_stopped() && !facts->has_dead_leader();
  });
}

/// Stops every living descendant, until no new one is seen. As they were before that. `all_stand`:
/// waits until no more can be born, for about a second: one that waits for a disk does not stop.
std::vector<ProcessFacts> stop_all(bool all_stand) {
  constexpr int kRounds = 100;  // a fork bomb that wins all of them meets the next call
  constexpr int kMaxNapMs = 10;
  std::set<std::pair<std::int32_t, std::uint64_t>> seen;
  std::vector<ProcessFacts> stopped;
  for (int round = 0; round < kRounds; ++round) {
    const std::size_t before = stopped.size();
    const bool were_standing = !all_stand || std::ranges::all_of(stopped, stands);
    for (const ProcessFacts& process : descendants()) {
      if (process.is_dead() || !seen.insert({process.pid, process.start_time}).second) continue;
      send_to(process, SIGSTOP);
      stopped.push_back(process);
    }
    if (stopped.size() != before) continue;
    if (were_standing) break;
    (void)::poll(nullptr, 0, std::min(round, kMaxNapMs));
  }
  return stopped;
}

}  // namespace

JobTree::JobTree(const attempt::Order& order) : memory_dir_(order.memory_cgroup) {
  if (!order.freeze_cgroup.empty()) freeze_file_ = order.freeze_cgroup + "/cgroup.freeze";
  if (order.kill_cgroup.empty()) return;
  kill_file_ = order.kill_cgroup + "/cgroup.kill";
  events_ = Fd(::open((order.kill_cgroup + "/cgroup.events").c_str(), O_RDONLY | O_CLOEXEC));
}

/// Begins again where a parent ends while it is looked at: another one takes its place.
bool JobTree::is_outside(std::int32_t pid) {
  constexpr int kMaxSteps = 10'000;
  std::int32_t at = pid;
  for (int steps = 0; steps < kMaxSteps; ++steps) {
    if (at == ::getpid()) return false;
    if (at <= 1) return true;  // 0 is what lies outside the pid namespace
    const auto facts = facts_of(std::to_string(at));
    if (!facts && at == pid) return false;
    at = facts ? facts->parent : pid;
  }
  return false;
}

void JobTree::send(int number) const {
  for (const ProcessFacts& process : descendants()) {
    if (!process.is_dead()) send_to(process, number);
  }
}

/// All stand still before one is told: of two looks without that, the first misses what is born
/// after it, and the second takes what the job starts to clean up for one that was missed. They go
/// on children first: a parent that waits for a child as sudo(1) does stops itself where it finds
/// that stopped.
void JobTree::signal(int number) const {
  if (number == SIGSTOP || number == SIGTSTP) return send(number);
  const bool is_frozen = read_path(freeze_file_).value_or("").starts_with('1');  // as they stand
  const std::vector<ProcessFacts> all = stop_all(!is_frozen);
  for (const ProcessFacts& process : all) send_to(process, number);
  for (const ProcessFacts& process : all | std::views::reverse) send_to(process, SIGCONT);
}

void JobTree::kill() const {
  if (!kill_file_.empty() && write_path(kill_file_, "1") && cgroup_populated()) {
    return kill_without_first_thread();
  }
  stop_and_kill();
}

void JobTree::stop_and_kill() const {
  for (const ProcessFacts& process : stop_all(false)) send_to(process, SIGKILL);
}

/// cgroup.kill signals the first thread of each process, and where that has ended the signal is
/// lost (Linux 6.18).
void JobTree::kill_without_first_thread() {
  for (const ProcessFacts& process : descendants()) {
    if (process.has_dead_leader()) send_to(process, SIGKILL);
  }
}

void JobTree::suspend() {
  if (!freeze_file_.empty() && write_path(freeze_file_, "1")) return;
  // What the job has stopped itself stays so when the others go on.
  for (const ProcessFacts& process : stop_all(false)) {
    if (process.state != 'T') stopped_.insert({process.pid, process.start_time});
  }
}

void JobTree::resume() {
  if (!freeze_file_.empty()) (void)write_path(freeze_file_, "0");
  for (const auto& [pid, start_time] : stopped_) send_to({pid, 0, 'T', start_time}, SIGCONT);
  stopped_.clear();
}

bool JobTree::cgroup_populated() const {
  if (!events_.valid()) return false;
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(events_.get(), buffer.data(), buffer.size(), 0);
  if (got < 0) return false;  // the group is gone, and with it its processes
  const std::string_view text(buffer.data(), static_cast<std::size_t>(got));
  return keyed_value(text, "populated").value_or(0) != 0;
}

std::uint32_t JobTree::oom_kills() const {
  if (memory_dir_.empty()) return 0;
  for (const char* name : {"/memory.events", "/memory.oom_control"}) {
    const auto text = read_path(memory_dir_ + name);
    const auto kills = keyed_value(text.value_or(""), "oom_kill");
    if (kills) return static_cast<std::uint32_t>(*kills);
  }
  return 0;
}

std::optional<std::int64_t> JobTree::peak_memory() const {
  if (memory_dir_.empty()) return std::nullopt;
  for (const char* name : {"/memory.peak", "/memory.max_usage_in_bytes"}) {
    const std::string text = read_path(memory_dir_ + name).value_or("");
    std::string_view rest = text;
    const auto bytes = number_of<std::int64_t>(take_field(rest, '\n'));
    if (bytes) return bytes;
  }
  return std::nullopt;
}

}  // namespace gflow::shim
