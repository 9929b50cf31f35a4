// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <utility>

#include "base/text.h"
#include "core/file_budget.h"
#include "os/file.h"
#include "os/host.h"
#include "runner/core.h"
#include "runner/environment.h"
#include "runner/gpu_share.h"
#include "runner/isolation.h"
#include "runner/outcome.h"
#include "runner/processes.h"
#include "runner/spawn.h"

namespace gflow::runner {
namespace {

std::string random_id() {
  std::array<unsigned char, 16> bytes{};
  (void)::getrandom(bytes.data(), bytes.size(), 0);  // up to 256 bytes cannot fail (getrandom(2))
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id;
  for (const unsigned char byte : bytes) {
    id.push_back(kDigits[byte >> 4]);
    id.push_back(kDigits[byte & 15]);
  }
  return id;
}

/// Below this process's own, if it has one: it runs within a job then, whose mark is above it.
std::uint64_t random_mark() {
  rlimit limit{};
  if (::getrlimit(__RLIMIT_LOCKS, &limit) != 0) return 0;
  const std::uint64_t most = std::min<std::uint64_t>(limit.rlim_max, std::uint64_t{1} << 62);
  if (most < 2) return 0;
  std::uint64_t number = 0;
  (void)::getrandom(&number, sizeof number, 0);
  return 1 + number % (most - 1);
}

/// A job submitted from within a job carries the other one's.
void set_launch_id(std::vector<std::string>& environment, const std::string& launch_id) {
  const std::string start = "GFLOW_ATTEMPT_ID=";
  std::erase_if(environment, [&](const std::string& text) { return text.starts_with(start); });
  environment.push_back(start + launch_id);
}

attempt::Grant grant_of(const DeviceGrant& grant) {
  return {.index = static_cast<std::uint32_t>(grant.index),
          .share_parts = static_cast<std::uint32_t>(grant.share.parts),
          .share_limit_parts = static_cast<std::uint32_t>(grant.share_limit.parts),
          .memory_bytes = static_cast<std::uint64_t>(grant.memory.bytes),
          .vendor = grant.vendor,
          .uuid = grant.uuid};
}

}  // namespace

/// What the submitter had, what the order says, and what only this node knows.
std::vector<std::string> Runner::Core::environment_for(const LaunchOrder& given,
                                                       const GpuPart& part) {
  const AttemptFiles files(options.attempts_dir, given.job, given.attempt);
  Surroundings around;
  around.socket = options.socket;
  around.log_path = options.logs_dir + "/" + std::to_string(given.job.value) + ".log";
  around.config_path = files.config_path(given.payload);
  if (options.ports > 0) {
    for (const Key& key : std::exchange(ports_unread, {})) note_ports(key);
    // None left is none given: a job that does not need them never notices.
    around.ports =
        ports.take(options.ports, std::chrono::steady_clock::now()).value_or(PortBlock{});
    if (around.ports.count > 0) given_ports[{given.job, given.attempt}] = around.ports;
  }
  const auto ordered = changed_environment(given.payload.environment, given.environment);
  auto environment = without_interposer(changed_environment(ordered, local_environment(around)));
  if (part.account.empty()) return environment;
  return with_interposer(std::move(environment), options.share_library, files.share_directory());
}

/// Nothing if the attempt cannot be held to its part: what is in the way of that is in the way of
/// no job.
GpuPart Runner::Core::part_for(const LaunchOrder& given) const {
  const auto limits = device_limits(given);
  const bool is_needed = given.watches || !limits.empty();
  if (!is_needed || !can_be_preloaded(options.share_library)) return {};
  if (!why_not_loadable(options.share_library, given.user.uid).empty()) return {};
  auto account = share::encode_account(limits);
  if (!account) return {};
  return {.account = std::move(*account), .turns = turns_of(limits), .watches = limits.empty()};
}

void Runner::Core::note_ports(Key key) {
  const auto order = AttemptFiles(options.attempts_dir, key.first, key.second).order();
  if (!order) {
    ports_unread.insert(key);
  } else if (*order) {
    note_ports(key, ports_in((*order)->environment));
  }
}

void Runner::Core::note_ports(Key key, PortBlock block) {
  if (block.count == 0 || !given_ports.emplace(key, block).second) return;
  ports.note(block);
}

Result<attempt::Order> Runner::Core::order_for(const LaunchOrder& given, const GpuPart& part) {
  const AttemptFiles files(options.attempts_dir, given.job, given.attempt);
  attempt::Order order;
  order.job = given.job.value;
  order.attempt = static_cast<std::uint32_t>(given.attempt);
  order.launch_id = random_id();
  order.mark = random_mark();
  order.boot_id = options.boot_id;
  if (given.user.uid != ::geteuid()) {
    if (::geteuid() != 0) {
      return fail(Code::Permission,
                  "only a daemon run by root can run jobs of other users; this one is of " +
                      printable(given.user.name));
    }
    order.uid = given.user.uid;
  }
  order.work_dir = given.work_dir;
  order.log_path = options.logs_dir + "/" + std::to_string(given.job.value) + ".log";
  order.script = files.script_path(given.payload);
  order.argv = given.payload.argv;
  if (order.argv.empty() && given.payload.script) order.argv.emplace_back("script");
  if (order.argv.empty()) return fail(Code::Usage, "the job has no program to run");
  order.environment = environment_for(given, part);
  set_launch_id(order.environment, order.launch_id);
  order.umask = given.payload.umask & 0777;
  order.open_files = options.open_files;
  order.time_limit = given.time_limit;
  order.grace = std::max(given.grace, std::chrono::seconds(0));
  if (options.bind_cpus) order.cpus.assign(given.cpus.begin(), given.cpus.end());
  order.node = given.node;
  for (const DeviceGrant& grant : given.devices) order.devices.push_back(grant_of(grant));
  if (!given.devices.empty()) order.gpu_mode = gpu_mode_name(given.mode);
  order.cpu_limit = static_cast<std::uint32_t>(given.limits.cpus);
  order.memory_limit = static_cast<std::uint64_t>(given.limits.memory.bytes);
  if (given.filter) {
    order.isolation = gpu_isolation_name(options.isolation);
    order.filter = *given.filter;
  }
  return order;
}

/// A standby that does not answer is not worth a job: another one is started.
Result<Shim> Runner::Core::start_shim(const AttemptFiles& files,
                                      const attempt::Order& order,
                                      std::optional<Standby> ready) {
  if (ready) {
    const auto joined = std::span(order.cgroups).first(ready->groups.size());
    // Its child may hold the socket open for a moment when it has been killed.
    const bool lives = !has_ended(ready->shim.process);
    if (lives && send_attempt(*ready, files.directory(), joined)) return std::move(ready->shim);
    dismiss(std::move(*ready));
  }
  return spawn_shim(options.shim, files.directory(), shim_log());
}

/// At once: of its ports, of the pipe and what goes to the supervisor, of that itself.
constexpr std::size_t kDescriptorsOfShim = 6;

bool Runner::Core::have_share(std::size_t more) const {
  constexpr std::size_t kOfRunning = 3;  // its supervisor, what that says, its first process
  return attempts.size() * kOfRunning + more <= file_budget(os::open_file_limit()).jobs;
}

Result<void> Runner::Core::check_files() const {
  if (!have_share(kDescriptorsOfShim)) {
    return std::unexpected(Error{
        Code::Failure,
        fmt::format("{} jobs run, and gflowd may open no more files for another one: raise its "
                    "limit ('ulimit -n', or LimitNOFILE= of its service)",
                    attempts.size()),
        EMFILE});
  }
  return os::check_descriptors(kDescriptorsOfShim + kDescriptorsLeft);
}

/// Nothing runs that is not watched: once there is a shim, what fails is tried again.
std::optional<Outcome> Runner::Core::start(const LaunchOrder& given) {
  const Key key(given.job, given.attempt);
  const AttemptFiles files(options.attempts_dir, given.job, given.attempt);
  if (const auto can = check_files(); !can) {
    strangers.insert(key);  // nothing that may lie there is of it
    return not_launched(FailureKind::Node, "start the supervisor", can.error());
  }
  const GpuPart part = part_for(given);
  auto order = order_for(given, part);
  if (!order) return not_launched(FailureKind::Job, "write the launch order", order.error());
  const std::string name = attempt_name(given.job, given.attempt);
  const auto made_groups = cgroups.create(
      name, given.limits, *order, standby ? standby->groups : std::vector<std::string>{});
  made[key] = {.groups = order->cgroups,
               .only_usual_files =
                   !given.payload.script && !given.payload.config_name && part.account.empty()};
  std::optional<Standby> ready = std::exchange(standby, std::nullopt);
  const auto give_up = [&ready](Outcome outcome) {
    if (!ready) return outcome;
    const std::vector<std::string> its = ready->groups;
    dismiss(std::move(*ready));
    Cgroups::remove(its);
    return outcome;
  };
  if (!made_groups) {
    return give_up(
        not_launched(FailureKind::Node, "create the control group", made_groups.error()));
  }
  if (const auto written = files.create(*order, given.payload, part, &spare); !written) {
    if (written.error().number == EEXIST) strangers.insert(key);
    return give_up(not_launched(written.error().code == Code::Usage ? FailureKind::Job
                                : written.error().number == EEXIST  ? FailureKind::Passing
                                                                    : FailureKind::Node,
                                "write the launch order",
                                written.error()));
  }
  auto shim = start_shim(files, *order, std::move(ready));
  if (!shim) return not_launched(FailureKind::Node, "start the supervisor", shim.error());
  Watched& watched = watch(given.job, given.attempt, shim->pid, std::move(shim->process));
  watched.traces = traces_of(*order);
  watched.kill_cgroup = order->kill_cgroup;
  watched.freeze_cgroup = order->freeze_cgroup;
  watched.isolation = isolation_of(*order);
  watched.status = std::move(shim->status);
  watched.expected.set_grace(order->grace);
  watched.expected.obey(attempt::SetLimit{order->time_limit}, ExpectedEnd::Clock::now());
  await_start(watched);
  watch_shim(watched);
  return std::nullopt;
}

void Runner::Core::launch(const LaunchOrder& order) {
  if (auto failed = start(order)) report(Gone{order.job, order.attempt, std::move(*failed)});
  make_standby();
}

void Runner::Core::make_standby() {
  if (standby || !cgroups.has_to_join()) return;
  if (!check_files()) return;
  auto ready = cgroups.make_ready(random_id());
  if (!ready) return;
  const bool unified = !ready->empty() && cgroups.is_unified(ready->front());
  constexpr std::size_t kLongestName = 40;  // of a directory: two numbers and a dot
  auto started = spawn_standby(
      options.shim, shim_log(), *ready, unified, options.attempts_dir.size() + kLongestName);
  if (started) {
    standby = std::move(*started);
  } else {
    Cgroups::remove(*ready);
  }
}

void Runner::Core::dismiss_standby() {
  if (!standby) return;
  const std::vector<std::string> its = standby->groups;
  dismiss(std::move(*std::exchange(standby, std::nullopt)));
  // A process leaves its groups a moment after it can be waited for.
  constexpr int kTries = 100;
  for (int tries = 0; tries < kTries; ++tries) {
    Cgroups::remove(its);
    if (std::ranges::none_of(its, os::exists)) break;
    (void)::poll(nullptr, 0, 1);
  }
}

Runner::Core::~Core() {
  if (probe) (void)::kill(probe->pid, SIGKILL);  // its zombie ends with this process
  dismiss_standby();
  cgroups.remove_empty_parents();
}

void Runner::Core::remove(const std::string& directory) const {
  if (options.remove) return options.remove(directory);
  (void)os::remove_tree(directory);  // what cannot be removed now is swept at the next start
}

void Runner::Core::remove_spare() const {
  for (const std::string& directory : SpareFiles::left_in(options.attempts_dir)) remove(directory);
}

void Runner::Core::forget(Key key) {
  drop(key);
  if (const auto its = given_ports.extract(key)) ports.give_back(its.mapped());
  ports_unread.erase(key);
  const auto its = made.extract(key);
  if (its) Cgroups::remove(its.mapped().groups);
  if (strangers.erase(key) > 0) return;
  const AttemptFiles files(options.attempts_dir, key.first, key.second);
  if (!its) Cgroups::remove(groups_made_for(files, key));
  const bool can_be_kept = its && its.mapped().only_usual_files && its.mapped().has_record;
  if (can_be_kept && spare.keep(files)) return;
  remove(files.directory());
}

/// As the order has them: the daemon may have stood in another group when it started the attempt.
std::vector<std::string> Runner::Core::groups_made_for(const AttemptFiles& files, Key key) const {
  const auto order = files.order().value_or(std::nullopt);
  return order ? order->cgroups : cgroups.groups_of(attempt_name(key.first, key.second));
}

}  // namespace gflow::runner
