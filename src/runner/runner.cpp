// SPDX-License-Identifier: Apache-2.0
#include "runner/runner.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "os/file.h"
#include "runner/attempt_files.h"
#include "runner/core.h"
#include "runner/gpu_share.h"
#include "runner/isolation.h"
#include "runner/outcome.h"
#include "runner/spawn.h"

namespace gflow::runner {
namespace {

constexpr std::uint32_t kNobody = 65534;

/// Two daemons on one machine must not make groups of the same name: the name says which directory
/// their attempts are in. Not by its path, which in another mount namespace is another directory.
Result<std::string> cgroup_name(const std::string& attempts_dir) {
  struct stat facts{};
  if (::stat(attempts_dir.c_str(), &facts) != 0) return os::errno_error("look at", attempts_dir);
  return fmt::format("gflow-{:x}-{:x}", facts.st_dev, facts.st_ino);
}

Result<Cgroups> find_cgroups(const Options& options) {
  if (!options.use_cgroups) return Cgroups("control groups are switched off");
  const auto mounts = GF_TRY(os::read_if_exists("/proc/self/mountinfo"));
  const auto own = GF_TRY(os::read_if_exists("/proc/self/cgroup"));
  if (!mounts || !own) return Cgroups("this system has no control groups");
  const std::string name = GF_TRY(cgroup_name(options.attempts_dir));
  FilterProbe filters;
  if (options.isolation == GpuIsolation::Filter) {
    filters = [&](const std::string& directory) {
      return probe_filter(options.shim, directory, kProbeDevice);
    };
  }
  return Cgroups{
      parse_cgroup_layout(*mounts, *own),
      name,
      [&](const std::string& directory) { return probe_cgroup(options.shim, directory); },
      filters};
}

/// Now: the library may be gone since this daemon started. A daemon of everyone's asks for those
/// who have the fewest rights; of a job it is asked for its own user.
std::string gpu_enforcement(const Options& options) {
  const std::string& library = options.share_library;
  if (!can_be_preloaded(library)) return std::string(executor::kGpuNotHeld);
  const std::string why =
      why_not_loadable(library, options.serves_everyone ? kNobody : ::geteuid());
  if (why.empty()) return std::string(executor::kGpuHeld);
  return fmt::format("none: {}: {}", library, why);
}

}  // namespace

Runner::Core::Core(Options given, Cgroups usable)
    : options(std::move(given)), cgroups(std::move(usable)), spare(options.attempts_dir) {}

Result<void> Runner::Core::prepare() {
  // What a killed shim leaves becomes a child of this process, and is found by that.
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return os::errno_error("become a subreaper");
  epoll = os::Fd(::epoll_create1(EPOLL_CLOEXEC));
  wake = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  retry = os::Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  patience = os::Fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!epoll.valid() || !wake.valid() || !retry.valid() || !patience.valid()) {
    return os::errno_error("make descriptors");
  }
  epoll_event event{};
  event.events = EPOLLIN;  // serial 0 is no attempt's: these only make fd() readable
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0 ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, retry.get(), &event) != 0 ||
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, patience.get(), &event) != 0) {
    return os::errno_error("watch descriptors");
  }
  return {};
}

Watched& Runner::Core::watch(JobId job, int attempt, int shim_pid, os::Fd shim) {
  Watched watched{.job = job,
                  .attempt = attempt,
                  .files = AttemptFiles(options.attempts_dir, job, attempt),
                  .serial = ++last_serial,
                  .shim_pid = shim_pid,
                  .shim = std::move(shim)};
  by_serial[watched.serial] = {job, attempt};
  if (shim_pid > 0) by_shim[shim_pid] = job;
  return attempts.insert_or_assign(Key(job, attempt), std::move(watched)).first->second;
}

void Runner::Core::report(Report what) {
  reports.push_back(std::move(what));
  const std::uint64_t one = 1;
  (void)!::write(wake.get(), &one, sizeof one);  // cannot fail below 2^64 - 1 reports
}

/// Watches it no more.
void Runner::Core::drop(Key key) {
  const auto found = attempts.find(key);
  if (found == attempts.end()) return;
  by_serial.erase(found->second.serial);
  by_shim.erase(found->second.shim_pid);
  abandon(found->second.parking);
  doubtful.erase(key);
  for (std::size_t i = 0; i < kLooks; ++i) {
    look_at(found->second, static_cast<LookFor>(i), std::nullopt);
  }
  attempts.erase(found);
}

void Runner::Core::end(Watched& watched, Outcome outcome) {
  const Key key(watched.job, watched.attempt);
  drop(key);
  report(Gone{key.first, key.second, std::move(outcome)});
}

Runner::Runner(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Runner::~Runner() = default;

Result<std::unique_ptr<Runner>> Runner::open(Options options) {
  if (::access(options.shim.c_str(), X_OK) != 0) return os::errno_error("run", options.shim);
  // Only root has jobs of other users, who must come to their script and their log.
  const mode_t mode = ::geteuid() == 0 ? 0711 : 0700;
  GF_CHECK(os::make_own_directory(options.attempts_dir, mode));
  GF_CHECK(os::make_own_directory(options.logs_dir, mode));
  GF_CHECK(AttemptFiles::prepare_to_revoke(options.attempts_dir));
  Cgroups cgroups = GF_TRY(find_cgroups(options));
  std::string isolation(executor::kNotIsolated);
  if (options.isolation != GpuIsolation::None) {
    auto means = isolation_by(options.isolation, cgroups);
    if (!means && options.needs_isolation) {
      return fail(
          Code::Permission,
          fmt::format("jobs cannot be kept from GPUs they were not given by gpu_isolation = "
                      "\"{}\" in [runner] of gflow.toml: {}; {}",
                      gpu_isolation_name(options.isolation),
                      means.error().message,
                      isolation_advice(options.isolation)));
    }
    if (!means) options.isolation = GpuIsolation::None;
    isolation = means ? *std::move(means) : "none: " + means.error().message;
  }
  auto core = std::make_unique<Core>(std::move(options), std::move(cgroups));
  core->isolation = std::move(isolation);
  GF_CHECK(core->prepare());
  core->remove_spare();
  core->begin_probe();
  core->make_standby();
  return std::unique_ptr<Runner>(new Runner(std::move(core)));
}

int Runner::fd() const { return core_->epoll.get(); }
std::vector<Report> Runner::poll() { return core_->poll(); }
void Runner::launch(const LaunchOrder& order) { core_->launch(order); }

void Runner::stop(JobId job, int attempt, int signal, EndReason reason) {
  core_->stop({job, attempt}, signal, reason);
}

void Runner::signal(JobId job, int attempt, int number) {
  core_->tell({job, attempt}, attempt::SendSignal{number});
}
void Runner::suspend(JobId job, int attempt, Memory park) { core_->suspend({job, attempt}, park); }

void Runner::lend(JobId job, int attempt, Memory most) { core_->lend({job, attempt}, most); }

void Runner::resume(JobId job, int attempt) { core_->resume({job, attempt}); }

void Runner::move(JobId job, int attempt, const GpuMove& move, Memory most) {
  core_->move({job, attempt}, move, most);
}

void Runner::change_limit(JobId job,
                          int attempt,
                          std::optional<std::chrono::seconds> limit,
                          std::chrono::milliseconds ran) {
  core_->change_limit({job, attempt}, limit, ran);
}

void Runner::change_share_limit(JobId job, int attempt, Share limit) {
  const AttemptFiles files(core_->options.attempts_dir, job, attempt);
  // Where it cannot be written the job keeps the one it has until it is said again.
  (void)files.change_share_limit(limit);
}

Adoption Runner::adopt(JobId job, int attempt, const std::string& boot_id, Progress progress) {
  Adoption found = core_->adopt({job, attempt}, {boot_id, progress == Progress::Started});
  const auto* runs = std::get_if<StillRuns>(&found);
  const bool may_run = runs != nullptr || std::holds_alternative<Unknown>(found);
  if (may_run) core_->note_ports({job, attempt});
  return found;
}

std::vector<Doubt> Runner::doubts() const {
  std::vector<Doubt> doubts;
  for (const auto& key : core_->doubtful) {
    doubts.push_back({key.first, core_->attempts.at(key).doubt});
  }
  return doubts;
}

void Runner::forget(JobId job, int attempt) { core_->forget({job, attempt}); }

void Runner::sweep(const std::vector<std::pair<JobId, int>>& known) { core_->sweep(known); }

std::optional<JobId> Runner::owner_of(int pid) const { return core_->owner_of(pid); }

bool Runner::parks(const std::string& /*node*/) const { return core_->can_park; }

std::string Runner::cannot_move(const std::string& /*node*/) const { return core_->move_said; }

Enforcement Runner::enforcement(const std::string& /*node*/) const {
  Enforcement enforced = core_->cgroups.enforcement();
  enforced.gpu_isolation = core_->isolation;
  enforced.parking = core_->parking_enforcement();
  enforced.gpu_memory = gpu_enforcement(core_->options);
  enforced.gpu_compute = enforced.gpu_memory;
  return enforced;
}

GpuLimits Runner::gpu_limits(JobId job, int attempt) const {
  return AttemptFiles(core_->options.attempts_dir, job, attempt).gpu_limits();
}

GpuIsolation Runner::isolates(const std::string& /*node*/) const {
  return core_->options.isolation;
}

GpuIsolation Runner::gpu_isolation(JobId job, int attempt) const {
  const auto its = core_->attempts.find({job, attempt});
  return its == core_->attempts.end() ? GpuIsolation::None : its->second.isolation;
}

PortBlock Runner::ports(JobId job, int attempt) const {
  const auto its = core_->given_ports.find({job, attempt});
  return its == core_->given_ports.end() ? PortBlock{} : its->second;
}

std::string Runner::log_path(JobId job) const {
  return core_->options.logs_dir + "/" + std::to_string(job.value) + ".log";
}

Memory Runner::log_size(JobId job) const {
  struct stat facts{};
  return ::stat(log_path(job).c_str(), &facts) == 0 ? Memory{facts.st_size} : Memory{};
}

void Runner::remove_log(JobId job) {
  if (core_->options.remove) return core_->options.remove(log_path(job));
  (void)::unlink(log_path(job).c_str());  // one that is gone already is what was wanted
}

}  // namespace gflow::runner
