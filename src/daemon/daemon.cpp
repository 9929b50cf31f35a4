// SPDX-License-Identifier: Apache-2.0
#include "daemon/daemon.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

#include "base/text.h"
#include "daemon/check_running.h"
#include "daemon/daemon_lock.h"
#include "daemon/held_devices.h"
#include "daemon/log.h"
#include "daemon/loop.h"
#include "daemon/open_files.h"
#include "daemon/slices_of_boot.h"
#include "daemon/tls_files.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/host.h"
#include "os/lock_holder.h"
#include "os/unix_socket.h"
#include "os/user.h"
#include "runner/attempt_files.h"
#include "runner/runner.h"

namespace gflow::daemon {

struct Daemon::Core {
  explicit Core(Parts parts) : loop(std::move(parts)) {}
  Loop loop;
};

namespace {

Result<void> make_places(const Options& options) {
  const mode_t mode = options.system ? 0711 : 0700;
  for (const std::string& directory :
       {options.paths.state_dir, options.paths.logs_dir, options.paths.attempts_dir()}) {
    GF_CHECK(os::make_own_directory(directory, mode));
  }
  return make_socket_directory(options);
}

/// To start takes some room: its pid in the lock, the log, SQLite's files. On a disk that is full
/// to the last block it is taken from what was set aside for such a day.
void make_room(const Options& options, const Config& config) {
  constexpr Memory kEnough = Memory::mib(1);
  store::Ballast ballast(options.paths.ballast(), config.ballast);
  if (ballast.disk_free() < kEnough && ballast.steps_left() > 0) ballast.release_step();
}

/// What ends the daemon, told by a Result or thrown by a library, as the last line of its log:
/// nobody reads what a program in the background prints.
template <typename Act>
auto logged(const Act& act) -> decltype(act()) {
  const auto caught = [&act]() -> decltype(act()) {
    try {
      return act();
    } catch (const std::exception& thrown) {
      return fail(Code::Failure, thrown.what());
    }
  };
  auto done = caught();
  if (!done) spdlog::critical("gflowd ends: {}", printable(done.error().message));
  return done;
}

/// What is configured, what the machine file says, or the host's name.
std::string node_name(const Config& config, const devices::Source& source) {
  if (!config.node_name.empty()) return config.node_name;
  const std::string& name = source.machine().name;
  return name.empty() ? node_name_of(os::host_name()) : name;
}

/// Into an empty one.
Result<engine::State> load_state(engine::State state,
                                 store::Store& store,
                                 const os::Paths& paths,
                                 const std::string& node,
                                 std::vector<Token>& tokens) {
  const auto take = [&state](JobRange&& waiting) { state.restore(std::move(waiting)); };
  store::Loaded loaded = GF_TRY(store.load(take));
  GF_CHECK(check_running(loaded.jobs, paths));
  GF_CHECK(store.rename_node(loaded, node));
  GF_CHECK(forget_slices_of_another_boot(loaded, store, state.boot_id()));
  take_over_moves(loaded.jobs, paths.attempts_dir());
  for (Job& job : loaded.jobs) state.restore(std::move(job));
  state.restore(std::move(loaded.drains));
  state.restore(std::move(loaded.unhealthy));
  state.restore(std::move(loaded.slices));
  tokens = std::move(loaded.tokens);
  const MonoTime now = os::now().mono;
  state.set_lived(loaded.lived.now(now, state.boot_id()), now);
  state.set_forgotten(loaded.forgotten);
  state.restored(loaded.next_id);
  return state;
}

Result<std::unique_ptr<devices::Source>> open_devices(const Config& config) {
  devices::SourceOptions probe;
  probe.probe = os::helper_program("gflow-gpumon").value_or("");
  return devices::open_source(config.devices, probe);
}

/// Left to gflow, it is what only root can have, where jobs are of several users. In their place
/// among themselves a job's GPUs have other numbers then, which who runs all of them need not see.
void set_isolation(runner::Options& wanted, const std::string& setting) {
  const bool is_auto = setting == "auto";
  wanted.needs_isolation = !is_auto;
  if (setting == gpu_isolation_name(GpuIsolation::Filter) || (is_auto && wanted.serves_everyone)) {
    wanted.isolation = GpuIsolation::Filter;
  } else if (setting == gpu_isolation_name(GpuIsolation::Landlock)) {
    wanted.isolation = GpuIsolation::Landlock;
  }
}

Result<std::unique_ptr<runner::Runner>> open_runner(const Options& options,
                                                    const Config& config,
                                                    const devices::Source& source,
                                                    const std::string& boot_id,
                                                    Remover& remover) {
  constexpr int kPortsOfAJob = 8;
  runner::Options wanted;
  wanted.remove = [&remover](std::string path) { remover.remove(std::move(path)); };
  wanted.socket = options.paths.socket;
  wanted.ports = kPortsOfAJob;
  wanted.bind_cpus = !source.machine().source.starts_with("sim:");
  wanted.attempts_dir = options.paths.attempts_dir();
  wanted.logs_dir = options.paths.logs_dir;
  wanted.shim = GF_TRY(os::helper_program("gflow-shim"));
  wanted.park = os::helper_program("gflow-park").value_or("");
  wanted.probes_parking = source.machine().source == "nvml" && !source.machine().devices.empty();
  wanted.share_library = os::helper_library("libgflow-share.so").value_or("");
  wanted.serves_everyone = options.system;
  wanted.boot_id = boot_id;
  wanted.use_cgroups = config.cgroups;
  set_isolation(wanted, config.gpu_isolation);
  // Each running job and each connection takes some; jobs keep the limit programs expect.
  wanted.open_files = os::raise_open_files();
  return runner::Runner::open(wanted);
}

/// All that can be known of a start, devices apart, while another gflowd still has the lock: what
/// fails after that has ended is a machine without one.
Result<void> check_before_replacing(const Options& options, const Config& config) {
  GF_CHECK(os::helper_program("gflow-shim"));
  GF_CHECK(os::check_socket_place(options.paths.socket));
  GF_CHECK(store::Ballast(options.paths.ballast(), config.ballast).check());
  if (!config.tls_listen.empty()) GF_CHECK(tls_files(config, options.paths));
  GF_CHECK(os::open_file(options.paths.daemon_log(), O_WRONLY | O_APPEND | O_CREAT));
  GF_CHECK(store::Store::check_header(options.paths.database()));
  return runner::AttemptFiles::prepare_to_revoke(options.paths.attempts_dir());
}

}  // namespace

Daemon::Daemon(std::unique_ptr<Core> core) : core_(std::move(core)) {}
Daemon::~Daemon() = default;

Result<std::unique_ptr<Daemon>> Daemon::start(Options options) {
  GF_CHECK(check_open_files());
  const Config config = GF_TRY(
      config::read_config(options.paths.config_file, options.config_required, options.flags));
  if (!config.socket.empty()) options.paths.socket = config.socket;
  // Whatever the starter had: what is to be seen by others is opened to them where it is made.
  (void)::umask(0077);
  GF_CHECK(make_places(options));
  make_room(options, config);
  std::unique_ptr<devices::Source> source;
  if (options.replace) {
    source = GF_TRY(open_devices(config));
    GF_CHECK(check_before_replacing(options, config));
    if (const auto old = os::lock_holder(options.paths.lock())) GF_CHECK(end_holder(*old));
  }
  os::Fd lock = GF_TRY(take_daemon_lock(
      options.paths.lock(), {os::process_id(), options.paths.socket, options.arguments}));
  GF_CHECK(open_log(options.paths.daemon_log(), config.log_level));
  return logged(
      [&] { return start_under(std::move(lock), std::move(options), config, std::move(source)); });
}

Result<std::unique_ptr<Daemon>> Daemon::start_under(os::Fd lock,
                                                    Options options,
                                                    const Config& config,
                                                    std::unique_ptr<devices::Source> source) {
  GF_CHECK(store::Ballast(options.paths.ballast(), config.ballast).check());
  const std::string boot_id = GF_TRY(os::boot_id());
  auto store = GF_TRY(store::Store::open(options.paths.database()));
  auto remover = std::make_unique<Remover>();
  if (!source) source = GF_TRY(open_devices(config));
  auto runner = GF_TRY(open_runner(options, config, *source, boot_id, *remover));
  auto slicer = GF_TRY(devices::open_slicer(
      source->machine().source,
      {.program = os::helper_program("gflow-mig").value_or(""), .lock = options.paths.mig_lock()}));
  const std::string node = node_name(config, *source);
  std::vector<Token> tokens;
  engine::State state = GF_TRY(
      load_state(engine::State(config.policy, boot_id), *store, options.paths, node, tokens));
  const devices::DeviceIndices indices(held_devices(state, options.paths.attempts_dir(), node));
  OwnerOf owner_of = [local = runner.get()](int pid) { return local->owner_of(pid); };
  const std::string isolation = runner->enforcement(node).gpu_isolation;
  std::vector<NodeExecutor> executors;
  executors.push_back({std::move(runner), {node}});
  auto wall_timer = GF_TRY(os::WallTimer::create());
  spdlog::info("gflowd {} starts: node {}, devices {}, {} jobs known",
               os::process_id(),
               node,
               config.devices,
               state.count(kNotEnded | kEnded));
  for (const std::string& warning : config.warnings) spdlog::warn("{}", printable(warning));
  if (options.system && config.gpu_isolation == "auto" && isolation.starts_with("none")) {
    spdlog::warn("jobs can open GPUs they were not given: {}", printable(isolation));
  }

  auto core = std::make_unique<Core>(Parts{std::move(options),
                                           config,
                                           node,
                                           std::move(lock),
                                           std::move(store),
                                           std::move(source),
                                           std::move(slicer),
                                           indices,
                                           std::move(remover),
                                           std::move(executors),
                                           std::move(owner_of),
                                           std::move(wall_timer),
                                           std::move(state),
                                           std::move(tokens)});
  GF_CHECK(core->loop.begin());
  return std::unique_ptr<Daemon>(new Daemon(std::move(core)));
}

Result<void> Daemon::run() {
  return logged([this] { return core_->loop.run(); });
}

}  // namespace gflow::daemon
