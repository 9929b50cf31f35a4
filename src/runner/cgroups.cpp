// SPDX-License-Identifier: Apache-2.0
#include "runner/cgroups.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "base/text.h"
#include "core/cpu_list.h"
#include "os/file.h"
#include "runner/device_filter.h"

namespace gflow::runner {
namespace {

constexpr const char* kPrefix = "job-";
constexpr const char* kProbe = "probe-";
constexpr char kBehindName = '+';

/// A control file takes one write, and is never created.
Result<void> set(const std::string& file, const std::string& value) {
  const os::Fd fd = GF_TRY(os::open_file(file, O_WRONLY));
  if (::write(fd.get(), value.data(), value.size()) < 0) return os::errno_error("set", file);
  return {};
}

Result<void> make_group(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) == 0) return {};
  return os::errno_error("create the control group", directory);
}

/// Somebody may have tidied up and removed its parent, too.
Result<void> make_group_in(const std::string& parent, const std::string& directory) {
  if (::mkdir(directory.c_str(), 0755) == 0) return {};
  if (errno == ENOENT) GF_CHECK(make_group(parent));
  return make_group(directory);
}

/// Removes a group that has no processes, with the groups a job made in it.
void remove_group(const std::string& directory) {
  if (::rmdir(directory.c_str()) == 0 || errno == ENOENT) return;
  for (const std::string& name : os::names_in(directory).value_or(std::vector<std::string>{})) {
    const std::string inner = directory + "/" + name;
    if (os::is_directory(inner)) remove_group(inner);
  }
  (void)::rmdir(directory.c_str());  // one with processes stays
}

/// A process leaves its groups a moment after it can be waited for. What stays is removed with the
/// others.
void remove_probe(const std::string& directory) {
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    remove_group(directory);
    if (!os::exists(directory)) return;
    (void)::poll(nullptr, 0, 1);
  }
}

/// What a new group needs before it can be joined.
using Prepare = Result<void> (*)(const std::string& group, const std::string& parent);

Result<void> prepare_nothing(const std::string& /*group*/, const std::string& /*parent*/) {
  return {};
}

/// A v1 cpuset starts without any CPU and any memory node, and cannot be joined like that.
Result<void> inherit_cpuset(const std::string& group, const std::string& parent) {
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    const std::string value = GF_TRY(os::read_file(parent + file));
    GF_CHECK(set(group + file, std::string(trim(value))));
  }
  return {};
}

/// A directory to make groups in, below the daemon's own group, that processes can join from here.
Result<std::string> usable_parent(const std::string& own,
                                  const std::string& name,
                                  const JoinProbe& can_join,
                                  Prepare prepare) {
  const std::string parent = own + "/" + name;
  if (!os::is_directory(parent)) GF_CHECK(make_group(parent));
  GF_CHECK(prepare(parent, own));
  const std::string probe = parent + "/" + kProbe + std::to_string(::getpid());
  remove_group(probe);  // left by a daemon of the same pid that was killed
  GF_CHECK(make_group(probe));
  const auto prepared = prepare(probe, parent);
  const auto joined = prepared ? can_join(probe) : prepared;
  remove_probe(probe);
  if (!joined) return std::unexpected(joined.error());
  return parent;
}

using Filter = Result<void> (*)(const std::string& group, const DeviceFilter& filter);

/// That the kernel takes a filter does not say that it is heeded.
Result<void> try_filter(const std::string& parent, Filter set_filter, const FilterProbe& filters) {
  struct stat facts{};
  if (::stat(kProbeDevice, &facts) != 0) return os::errno_error("look at", kProbeDevice);
  const std::string probe = parent + "/" + kProbe + "filter-" + std::to_string(::getpid());
  remove_group(probe);  // left by a daemon of the same pid that was killed
  GF_CHECK(make_group(probe));
  auto works =
      set_filter(probe, {.denied = {DeviceNodes::one(major(facts.st_rdev), minor(facts.st_rdev))}});
  if (works) works = filters(probe);
  remove_probe(probe);
  return works;
}

/// In a group that may use named devices only, to deny one of several that a line names is taken
/// and changes nothing.
Result<void> check_denies(const std::string& group) {
  constexpr std::string_view kAll = "a *:* rwm";
  const std::string list = GF_TRY(os::read_file(group + "/devices.list"));
  if (trim(list) == kAll) return {};
  return fail(Code::Failure, group + " lists the devices that may be used, and cannot deny others");
}

std::vector<std::string> groups_in(const std::string& parent, const char* prefix) {
  std::vector<std::string> names = os::names_in(parent).value_or(std::vector<std::string>{});
  std::erase_if(names, [prefix](const std::string& name) { return !name.starts_with(prefix); });
  return names;
}

/// Half of what the machine can have at all: room for any real job, and a way in during a fork
/// bomb.
std::string max_processes() {
  std::uint64_t most = 32768;
  for (const char* file : {"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"}) {
    const auto text = os::read_file(file);
    const auto number = text ? parse_number(trim(*text)) : std::nullopt;
    if (number)
      most =
          file == std::string_view("/proc/sys/kernel/pid_max") ? *number : std::min(most, *number);
  }
  return std::to_string(most / 2);
}

}  // namespace

Cgroups::Cgroups(const std::string& why) {
  const std::string none = "none: " + why;
  enforcement_ = {.kill = "process tree (subreaper)",
                  .memory = none,
                  .cpu = none,
                  .processes = none,
                  .suspend = "SIGSTOP",
                  .binding = "sched_setaffinity",
                  .gpu_isolation = {},
                  .gpu_memory = {},
                  .gpu_compute = {}};
  devices_.why = why;
}

Cgroups::Cgroups(const CgroupLayout& layout,
                 const std::string& name,
                 const JoinProbe& can_join,
                 const FilterProbe& filters)
    : name_(name), unified_own_(layout.unified), max_processes_(max_processes()) {
  unified_why_ = "no cgroup v2 tree is mounted";
  if (!layout.unified.empty()) {
    const auto parent = usable_parent(layout.unified, name, can_join, prepare_nothing);
    if (parent) unified_ = *parent;
    if (!parent) unified_why_ = parent.error().message;
  }
  memory_ = choose("memory", layout.memory, can_join);
  cpu_ = choose("cpu", layout.cpu, can_join);
  pids_ = choose("pids", layout.pids, can_join);
  cpuset_ = choose("cpuset", layout.cpuset, can_join);
  if (filters) devices_ = choose_filter(layout.devices, can_join, filters);
  const bool controls = std::ranges::any_of(
      std::array{&memory_, &cpu_, &pids_, &cpuset_, &devices_},
      [](const Controller* controller) { return controller->version == Version::V2; });
  can_kill_ = !unified_.empty() && os::exists(unified_ + "/cgroup.kill");
  can_freeze_ = !unified_.empty() && os::exists(unified_ + "/cgroup.freeze");
  if (!controls && !can_kill_ && !can_freeze_) unified_.clear();
  const auto text = [](const Controller& controller, const char* v1, const char* v2) {
    if (controller.version == Version::None) return "none: " + controller.why;
    return std::string(controller.version == Version::V1 ? "cgroup v1 " : "cgroup v2 ") +
           (controller.version == Version::V1 ? v1 : v2);
  };
  enforcement_.kill = can_kill_ ? "cgroup.kill" : "process tree (subreaper)";
  enforcement_.memory = text(memory_, "memory.limit_in_bytes", "memory.max");
  enforcement_.cpu = text(cpu_, "cpu.cfs_quota_us", "cpu.max");
  enforcement_.processes = text(pids_, "pids.max", "pids.max");
  enforcement_.suspend = can_freeze_ ? "cgroup v2 cgroup.freeze" : "SIGSTOP";
  enforcement_.binding = cpuset_.version == Version::None
                             ? "sched_setaffinity"
                             : text(cpuset_, "cpuset.cpus", "cpuset.cpus");
}

Cgroups::Controller Cgroups::choose(const char* controller,
                                    const std::string& v1_own,
                                    const JoinProbe& can_join) {
  if (!v1_own.empty()) {
    const bool is_cpuset = std::string_view(controller) == "cpuset";
    const auto parent =
        usable_parent(v1_own, name_, can_join, is_cpuset ? inherit_cpuset : prepare_nothing);
    if (parent) return {*parent, Version::V1, {}};
    return {{}, Version::None, parent.error().message};
  }
  if (unified_.empty()) return {{}, Version::None, unified_why_};
  // Passing a controller on is refused by the kernel while the group itself has processes, as the
  // daemon's own does unless it is the root of the tree (the "no internal processes" rule).
  const std::string pass_on = std::string("+") + controller;
  for (const std::string& group : {unified_own_, unified_}) {
    const auto passed = set(group + "/cgroup.subtree_control", pass_on);
    if (!passed) return {{}, Version::None, passed.error().message};
  }
  return {unified_, Version::V2, {}};
}

/// By the tree of v2, if processes can be kept from devices there, else by that of v1.
Cgroups::Controller Cgroups::choose_filter(const std::string& v1_own,
                                           const JoinProbe& can_join,
                                           const FilterProbe& filters) const {
  Result<void> works = fail(Code::Failure, unified_why_);
  if (!unified_.empty()) works = try_filter(unified_, attach_filter, filters);
  if (works) return {unified_, Version::V2, {}};
  if (v1_own.empty()) return {{}, Version::None, works.error().message};
  const auto parent = usable_parent(v1_own, name_, can_join, prepare_nothing);
  if (!parent) return {{}, Version::None, works.error().message + "; " + parent.error().message};
  auto denies = check_denies(*parent);
  if (denies) denies = try_filter(*parent, deny_devices, filters);
  if (denies) return {*parent, Version::V1, {}};
  return {{}, Version::None, works.error().message + "; " + denies.error().message};
}

Result<std::string> Cgroups::device_filter() const {
  if (devices_.version == Version::None) return fail(Code::Failure, devices_.why);
  return devices_.version == Version::V1 ? "cgroup v1 devices.deny"
                                         : "cgroup v2 device filter (bpf)";
}

std::vector<std::string> Cgroups::parents() const {
  std::set<std::string> parents = {
      unified_, memory_.parent, cpu_.parent, pids_.parent, cpuset_.parent, devices_.parent};
  parents.erase("");
  return {parents.begin(), parents.end()};
}

std::vector<std::string> Cgroups::groups_of(const std::string& attempt) const {
  std::vector<std::string> groups;
  for (const std::string& parent : parents()) groups.push_back(parent + "/" + kPrefix + attempt);
  return groups;
}

/// The attempt's own, unless there are groups of that name that have processes: of an attempt of
/// this number in a database since restored. They are no business of this one's.
std::string Cgroups::unused_name(const std::string& attempt, const std::string& launch_id) const {
  bool is_free = true;
  for (const std::string& group : groups_of(attempt)) {
    remove_group(group);
    is_free = is_free && !os::exists(group);
  }
  return is_free ? attempt : attempt + kBehindName + launch_id.substr(0, 8);
}

std::vector<std::string> Cgroups::parents_of_all() const {
  std::vector<std::string> parents;
  for (const std::string& parent : {unified_, memory_.parent, pids_.parent, devices_.parent}) {
    if (!parent.empty() && std::ranges::find(parents, parent) == parents.end()) {
      parents.push_back(parent);
    }
  }
  return parents;
}

bool Cgroups::has_to_join() const {
  return std::ranges::any_of(parents_of_all(),
                             [this](const std::string& parent) { return parent != unified_; });
}

bool Cgroups::is_unified(const std::string& directory) const {
  return !unified_.empty() && directory.starts_with(unified_ + "/");
}

Result<std::vector<std::string>> Cgroups::make_ready(const std::string& id) const {
  std::vector<std::string> made;
  for (const std::string& parent : parents_of_all()) {
    const std::string directory = parent + "/" + kPrefix + kReady + id;
    auto done = make_group_in(parent, directory);
    if (!done) {
      remove(made);
      return std::unexpected(std::move(done).error());
    }
    made.push_back(directory);
  }
  return made;
}

Result<void> Cgroups::create(const std::string& attempt,
                             const LaunchLimits& limits,
                             attempt::Order& order,
                             const std::vector<std::string>& ready) const {
  const std::string group = kPrefix + unused_name(attempt, order.launch_id);
  Places places;
  for (const std::string& directory : ready) {
    // A group of v1 takes the name by which it is found when all else of the attempt is lost; one
    // of v2 cannot.
    const std::string parent = directory.substr(0, directory.rfind('/'));
    const std::string renamed = parent + "/" + group;
    const bool done = !is_unified(directory) && ::rename(directory.c_str(), renamed.c_str()) == 0;
    places[parent] = done ? renamed : directory;
    order.cgroups.push_back(places[parent]);
  }
  // Joining a group costs milliseconds (the kernel waits for all CPUs): only where it does
  // something.
  std::vector<std::string> wanted = parents_of_all();
  if (limits.cpus > 0 && !cpu_.parent.empty()) wanted.push_back(cpu_.parent);
  for (const std::string& parent : wanted) {
    const std::string directory = parent + "/" + group;
    if (!places.emplace(parent, directory).second) continue;
    GF_CHECK(make_group_in(parent, directory));
    order.cgroups.push_back(directory);
  }
  if (can_kill_) order.kill_cgroup = places.at(unified_);
  if (can_freeze_) order.freeze_cgroup = places.at(unified_);
  if (!memory_.parent.empty()) order.memory_cgroup = places.at(memory_.parent);
  if (!order.cpus.empty() && bind(group, order)) order.cpus.clear();
  if (order.isolation == attempt::kByFilter) GF_CHECK(set_filter(places, order.filter));
  return set_limits(places, limits);
}

Result<void> Cgroups::set_filter(const Places& places, const DeviceFilter& filter) const {
  const auto group = places.find(devices_.parent);
  if (group == places.end()) return fail(Code::Failure, devices_.why);
  return devices_.version == Version::V2 ? attach_filter(group->second, filter)
                                         : deny_devices(group->second, filter);
}

/// An error is not the end of the launch: the shim then binds the job by itself.
Result<void> Cgroups::bind(const std::string& group, attempt::Order& order) const {
  if (cpuset_.version == Version::None) return fail(Code::Failure, cpuset_.why);
  const std::string cpus = cpu_list_text({order.cpus.begin(), order.cpus.end()});
  const std::string directory = cpuset_.parent + "/" + group;
  if (cpuset_.version == Version::V2) {
    return set((order.cgroups.empty() ? directory : order.cgroups.front()) + "/cpuset.cpus", cpus);
  }
  (void)::rmdir(directory.c_str());
  GF_CHECK(make_group(directory));
  auto bound = inherit_cpuset(directory, cpuset_.parent);
  if (bound) bound = set(directory + "/cpuset.cpus", cpus);
  if (bound) order.cgroups.push_back(directory);
  if (!bound) (void)::rmdir(directory.c_str());
  return bound;
}

Result<void> Cgroups::set_limits(const Places& places, const LaunchLimits& limits) const {
  const auto file = [&](const Controller& controller, const char* name) {
    return places.at(controller.parent) + "/" + name;
  };
  const std::string bytes = std::to_string(limits.memory.bytes);
  const bool limit_memory = limits.memory.bytes > 0;
  if (limit_memory && memory_.version == Version::V1) {
    GF_CHECK(set(file(memory_, "memory.limit_in_bytes"), bytes));
    (void)set(file(memory_, "memory.memsw.limit_in_bytes"),
              bytes);  // not there without swap accounting
  }
  if (limit_memory && memory_.version == Version::V2) {
    GF_CHECK(set(file(memory_, "memory.max"), bytes));
    (void)set(file(memory_, "memory.swap.max"), "0");   // not there without swap
    (void)set(file(memory_, "memory.oom.group"), "1");  // since Linux 4.19
  }
  constexpr int kPeriod = 100'000;  // microseconds, the kernel's default
  const std::string quota = std::to_string(std::int64_t{limits.cpus} * kPeriod);
  if (limits.cpus > 0 && cpu_.version == Version::V1) {
    GF_CHECK(set(file(cpu_, "cpu.cfs_quota_us"), quota));
  }
  if (limits.cpus > 0 && cpu_.version == Version::V2) {
    GF_CHECK(set(file(cpu_, "cpu.max"), quota + " " + std::to_string(kPeriod)));
  }
  if (pids_.version != Version::None) GF_CHECK(set(file(pids_, "pids.max"), max_processes_));
  return {};
}

/// That of cgroup v1 with swap is never below the one without: which is written first depends on
/// whether it grows.
Result<void> Cgroups::change_memory_limit(const std::string& group, Memory limit) {
  const std::string bytes = std::to_string(limit.bytes);
  const std::string unified = group + "/memory.max";
  if (os::exists(unified)) return set(unified, bytes);
  (void)set(group + "/memory.memsw.limit_in_bytes", bytes);  // not there without swap accounting
  GF_CHECK(set(group + "/memory.limit_in_bytes", bytes));
  (void)set(group + "/memory.memsw.limit_in_bytes", bytes);
  return {};
}

void Cgroups::remove(const std::vector<std::string>& directories) {
  for (const std::string& directory : directories) remove_group(directory);
}

void Cgroups::remove_empty_parents() const {
  for (const std::string& parent : parents()) (void)::rmdir(parent.c_str());
}

void Cgroups::remove_others(const std::function<bool(const std::string&)>& keep) const {
  for (const std::string& parent : parents()) {
    for (const std::string& group : groups_in(parent, kProbe)) remove({parent + "/" + group});
    for (const std::string& group : groups_in(parent, kPrefix)) {
      const std::string name = group.substr(std::string_view(kPrefix).size());
      if (!keep(name.substr(0, name.find(kBehindName)))) remove({parent + "/" + group});
    }
  }
}

}  // namespace gflow::runner
