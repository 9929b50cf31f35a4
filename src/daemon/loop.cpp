// SPDX-License-Identifier: Apache-2.0
#include "daemon/loop.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <csignal>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "core/find_device.h"
#include "core/job_devices.h"
#include "daemon/log.h"
#include "os/clock.h"
#include "os/file.h"

namespace gflow::daemon {

using Wait = boost::asio::posix::stream_descriptor::wait_type;
using boost::system::error_code;

namespace {

/// How long a piece of work keeps others waiting: a tick is about as long as writing one commit.
constexpr std::chrono::milliseconds kSlice{2};

/// Has `watcher` wait for `fd`: for a copy of it, as it closes what it waits for.
Result<void> give(boost::asio::posix::stream_descriptor& watcher, int fd) {
  os::Fd copy = os::duplicate(fd);
  if (!copy.valid()) return os::errno_error("wait for what comes");
  error_code error;
  watcher.assign(copy.get(), error);
  if (error) return fail(Code::Failure, "wait for what comes: " + error.message());
  (void)copy.release();
  return {};
}

/// Where its memory is not told, only that it uses the GPU.
std::string overuse_text(const Job& job, const engine::effect::Overuse& overuse) {
  const std::string who = fmt::format(
      "job {} ({}, {})", job.id.value, printable(job.spec.user.name), printable(job.spec.name));
  if (overuse.reserved) {
    return fmt::format("{} uses {} of the memory of GPU {}; {} is reserved for it",
                       who,
                       memory_text(overuse.used.value_or(Memory{}), *overuse.reserved),
                       overuse.gpu,
                       memory_text(*overuse.reserved));
  }
  return fmt::format(
      "{} uses GPU {}{}, which it does not hold: nothing is started there until it no longer does",
      who,
      overuse.gpu,
      overuse.used ? fmt::format(" ({} of its memory)", memory_text(*overuse.used)) : "");
}

}  // namespace

Loop::Loop(Parts parts)
    : parts_(std::move(parts)),
      state_(parts_.state),
      ballast_(parts_.options.paths.ballast(), parts_.config.ballast),
      dispatcher_(
          state_,
          *parts_.store,
          parts_.executors,
          [this](engine::Event event) { request(std::move(event), {}); },
          [this](LaunchOrder& order) {
            if (const Job* job = state_.find(order.job)) traces_.launching(*job, order);
          },
          [this](const MadeSlice& slice) { cut(slice); }),
      shell_(state_, *parts_.store, dispatcher_, &ballast_),
      started_(os::now()),
      device_fd_(io_),
      slicer_fd_(io_),
      wall_fd_(io_),
      mono_timer_(io_),
      refresh_timer_(io_),
      room_timer_(io_),
      signals_(io_),
      feed_(io_),
      answered_(parts_.options.paths.answered_allocations(), state_.boot_id()),
      owners_(io_, *parts_.store, [this](JobId job) { leave_queue(job); }),
      backups_(io_, *parts_.store, parts_.options.paths.database()),
      socket_watch_(
          io_,
          parts_.options.paths.socket,
          {[this] { return make_socket_directory(parts_.options); }, [this] { return listen(); }}) {
}

Result<void> Loop::begin() {
  tokens_.replace(std::move(parts_.tokens));
  first_id_ = state_.next_id();
  const auto under_way = shell_.take_over();
  dispatcher_.sweep(under_way);
  spdlog::info("{} jobs were under way", under_way.size());
  for (const executor::Doubt& doubt : dispatcher_.doubts()) {
    spdlog::warn("{}", doubt_text(doubt));
  }
  traces_.set_endpoint(parts_.config.otlp_endpoint, parts_.node);
  for (const auto& [id, attempt] : under_way) {
    job_watch_.know(*state_.find(id));
    if (!traces_.is_on()) continue;
    if (const auto payload = parts_.store->payload(id)) traces_.know(*state_.find(id), *payload);
  }
  hpc_jobs_.set_directory(parts_.config.metrics.hpc_job_mapping_dir);
  Machine first = reading();
  if (const std::string open = gpus_without_nodes(first); !open.empty()) {
    spdlog::warn("jobs on GPU {} can open GPUs they were not given: what opens it is not known",
                 open);
  }
  device_news_.see(first, parts_.config.gpus);
  device_news_.on_change(
      [this](const DeviceChange& change) { events_.add(os::now().wall, change); });
  for (JobEvents& kept : GF_TRY(parts_.store->events())) events_.add(std::move(kept));
  events_.begin_at(parts_.store->next_event(os::now().wall));
  shell_.post(engine::event::NodesChanged{{std::move(first)}});
  GF_CHECK(take_over_allocations());
  do {
    GF_CHECK(tick());
  } while (!shell_.idle());
  GF_CHECK(socket_watch_.begin());
  GF_CHECK(give(wall_fd_, parts_.wall_timer.fd()));
  if (parts_.source->fd() >= 0) GF_CHECK(give(device_fd_, parts_.source->fd()));
  if (parts_.slicer->fd() >= 0) GF_CHECK(give(slicer_fd_, parts_.slicer->fd()));
  for (const NodeExecutor& each : parts_.executors) {
    auto& fd = executor_fds_.emplace_back(io_);
    GF_CHECK(give(fd, each.executor->fd()));
    watch_executor(*each.executor, fd);
  }
  watch_devices();
  watch_slicer();
  watch_wall_timer();
  watch_signals();
  refresh_later();
  set_backups();
  return {};
}

void Loop::set_backups() {
  const Config& config = parts_.config;
  backups_.set({config.backup_interval, config.max_backups, config.ballast});
}

/// Requests, reports and timers come first, then one slice of what takes long, a tick or launches,
/// and again: whoever asks waits for a slice, not for all that is due. A flood of them does not
/// keep jobs from being started.
Result<void> Loop::run() {
  while (!io_.stopped()) {
    if (!tick_is_due_ && !launch_is_due_) {
      io_.run_one();
      continue;
    }
    const MonoTime until = os::now().mono + kSlice;
    while (io_.poll_one() > 0 && os::now().mono < until) {
    }
    if (!io_.stopped()) take_slice();
  }
  if (end_) end_ = take_leave();
  if (end_) backups_.finish();
  return end_;
}

void Loop::take_slice() {
  const bool launches = launch_is_due_ && (!tick_is_due_ || ticked_last_);
  ticked_last_ = !launches;
  if (launches) return launch_some();
  tick_is_due_ = false;
  if (auto done = tick(); !done) {
    end_ = std::move(done);
    io_.stop();
  }
}

Now Loop::now() const { return os::now(); }

GpuLimits Loop::gpu_limits(const Job& job) const { return dispatcher_.gpu_limits(job); }
std::optional<JobId> Loop::owner_of(int pid) const { return parts_.owner_of(pid); }
std::optional<GpuIsolation> Loop::gpu_isolation(const Job& job) const {
  return dispatcher_.gpu_isolation(job);
}

PortBlock Loop::ports(const Job& job) const { return dispatcher_.ports(job); }

std::string Loop::log_path(JobId job) const {
  const Job* known = state_.find(job);
  return known == nullptr ? std::string() : dispatcher_.log_path(*known);
}

void Loop::submit(api::SubmitRequest request,
                  const Principal& by,
                  Answer answer,
                  server::SubmitIf condition) {
  if (traces_.is_on()) {
    answer = [this, parents = JobTraces::parents_in(request), answer = std::move(answer)](
                 Result<std::vector<JobId>> jobs) {
      if (jobs) traces_.submitted(parents, *jobs);
      if (answer) answer(std::move(jobs));
    };
  }
  shell_.submit(std::move(request), by, std::move(answer), std::move(condition));
  parts_.source->refresh();
  soon();
}

void Loop::request(engine::Event event, Answer answer, Check check) {
  shell_.post(std::move(event), std::move(answer), std::move(check));
  soon();
}

std::shared_ptr<void> Loop::on_change(std::uint64_t revision,
                                      std::optional<JobId> job,
                                      std::chrono::milliseconds most,
                                      std::function<void()> then) {
  return feed_.wait(revision, job, most, std::move(then));
}

Result<void> Loop::keep_tokens(std::vector<Token> tokens) {
  auto done = parts_.store->commit(store::Batch{.tokens = tokens});
  const bool is_full = !done && done.error().code == Code::Exhausted;
  if (is_full && tokens.size() < tokens_.all()->size() && ballast_.steps_left() > 0) {
    ballast_.release_step();  // a full disk is no reason to leave a token in force
    done = parts_.store->commit(store::Batch{.tokens = tokens});
  }
  if (done) {
    tokens_.replace(std::move(tokens));
    if (server_) server_->tokens_changed();
  } else if (done.error().code != Code::Exhausted) {
    end_ = done;  // what the store holds is the truth
    io_.stop();
  }
  return done;
}

void Loop::stop() {
  spdlog::info("stopping; jobs keep running");
  socket_watch_.end();
  if (server_) server_->close();
  // Answers that are being written still go out; what was for those who wait is taken back.
  boost::asio::post(io_, [this] {
    if (auto done = tick(); !done) end_ = std::move(done);
    io_.stop();
  });
}

Result<void> Loop::reload() {
  Config fresh = GF_TRY(config::read_config(
      parts_.options.paths.config_file, parts_.options.config_required, parts_.options.flags));
  std::vector<std::string> for_restart;
  for (const settings::Setting& setting : settings::table()) {
    if (setting.applies != settings::Applies::Restart) continue;
    if (setting.write(fresh) == setting.write(parts_.config)) continue;
    const std::string name = setting.full_name();
    spdlog::warn("{} changes with 'gflowd restart' only, ignoring", name);
    GF_CHECK(setting.read(fresh, setting.write(parts_.config)));
    fresh.origins.erase(name);
    if (const auto was = parts_.config.origins.find(name); was != parts_.config.origins.end()) {
      fresh.origins.insert(*was);
    }
    for_restart.push_back(name);
  }
  if (fresh.otlp_endpoint != parts_.config.otlp_endpoint) {
    traces_.set_endpoint(fresh.otlp_endpoint, parts_.node);
  }
  parts_.config = std::move(fresh);
  settings_for_restart_ = std::move(for_restart);
  set_log_level(parts_.config.log_level);
  set_backups();
  hpc_jobs_.set_directory(parts_.config.metrics.hpc_job_mapping_dir);
  refresh_later();
  spdlog::info("configuration read again");
  shell_.post(engine::event::Configure{parts_.config.policy});
  configure_access();
  shell_.post(engine::event::NodesChanged{{reading()}});
  parts_.source->refresh();
  soon();
  return {};
}

void Loop::soon() { tick_is_due_ = true; }

/// What a flood of events leaves is decided in the next tick, before which others are answered.
Result<void> Loop::tick() {
  const Now now = os::now();
  const auto began = std::chrono::steady_clock::now();
  auto ticked = shell_.tick(now, [until = now.mono + kSlice] { return os::now().mono >= until; });
  if (!ticked) return std::unexpected(std::move(ticked).error());
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  counters_.pass.observe(took.count());
#ifndef NDEBUG
  if (const std::string wrong = state_.check(); !wrong.empty()) {
    return fail(Code::Failure, "the engine contradicts itself: " + wrong);
  }
#endif
  events_.add(std::move(ticked->events));
  if (ticked->told_of_nodes) node_news_.expect();
  if (!shell_.disk_is_full()) node_news_.tell(state_, events_, now.wall);
  log_disk();
  log_changes(*ticked);
  count(ticked->changed);
  show_hpc_jobs();
  log_overuse(ticked->overuses);
  feed_.record(state_.revision(), ticked->changed);
  set_timers(*ticked);
  look_for_room();
  // What is not there any more is shown no longer than it is held.
  if (parts_.indices.has_missing() && !ticked->changed.empty()) {
    shell_.post(engine::event::NodesChanged{{reading()}});
  }
  if (!shell_.idle()) soon();
  launch_is_due_ = shell_.has_launches();
  return {};
}

void Loop::launch_some() {
  const MonoTime until = os::now().mono + kSlice;
  while (shell_.has_launches() && os::now().mono < until) shell_.launch_next();
  launch_is_due_ = shell_.has_launches();
}

/// Once when it fills and once when there is room again.
void Loop::log_disk() {
  const bool full = shell_.disk_is_full();
  if (full == disk_was_full_) return;
  disk_was_full_ = full;
  if (full) {
    spdlog::error("{}", shell_.disk_text(OthersJobs::All));
  } else {
    spdlog::warn("there is room on the disk again: what had waited is written");
  }
}

void Loop::log_changes(const Shell::Ticked& ticked) const {
  for (const auto& range : ticked.added) {
    spdlog::info("{} jobs {}-{} ({}, {} to {}) are {}",
                 range->count,
                 range->first.id.value,
                 range->last().value,
                 printable(range->first.spec.user.name),
                 printable(range->first.spec.name),
                 printable(range->name(range->count - 1)),
                 status_name(status_of(range->first)));
  }
  for (const JobId id : ticked.changed) {
    const Job* job = state_.find(id);
    if (job == nullptr) continue;
    const auto* ended = std::get_if<Ended>(&job->state);
    spdlog::info("job {} ({}, {}) is {}{}",
                 id.value,
                 printable(job->spec.user.name),
                 printable(job->spec.name),
                 status_name(status_of(*job)),
                 ended == nullptr ? "" : ": " + printable(outcome_text(ended->outcome)));
  }
}

/// The jobs on the GPUs of this machine, for dcgm-exporter.
void Loop::show_hpc_jobs() {
  if (!hpc_jobs_.is_on()) return;
  const auto here = state_.nodes().find(parts_.node);
  if (here == state_.nodes().end()) return;  // in the first ticks, before its devices are told
  std::vector<const Device*> devices;
  for (const Device& device : here->second.machine.devices) devices.push_back(&device);
  std::map<int, std::vector<JobId>> jobs;
  for (const Device* device : devices) {
    std::ranges::copy(state_.holders(parts_.node, device->index),
                      std::back_inserter(jobs[gpu_number(*device, devices)]));
  }
  for (auto& [gpu, its] : jobs) {  // one may have several MIG devices of it
    std::ranges::sort(its);
    its.erase(std::ranges::unique(its).begin(), its.end());
  }
  hpc_jobs_.show(jobs);
}

/// A job that has ended changes no more.
void Loop::count(const std::set<JobId>& changed) {
  for (const JobId id : changed) {
    const Job* job = state_.find(id);
    if (job == nullptr) continue;
    job_watch_.see(*job, traces_.trace_id(*job));
    owners_.see(*job);
    traces_.see(*job, os::now().wall);
  }
  counters_.submitted = state_.next_id().value - first_id_.value;
}

void Loop::log_overuse(const std::vector<engine::effect::Overuse>& overuses) const {
  for (const engine::effect::Overuse& overuse : overuses) {
    const Job* job = state_.find(overuse.job);
    if (job == nullptr) continue;
    const char* const then = overuse.is_stopped ? "; it is stopped (stop_overuse)" : "";
    spdlog::warn("{}{}", overuse_text(*job, overuse), then);
  }
}

void Loop::set_timers(const Shell::Ticked& ticked) {
  if (ticked.wake_wall) parts_.wall_timer.set(*ticked.wake_wall);
  if (!ticked.wake_mono) return;
  const auto left = *ticked.wake_mono - os::now().mono;
  mono_timer_.expires_after(std::max(left, std::chrono::milliseconds(0)));
  mono_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    shell_.post(engine::event::Tick{});
    soon();
  });
}

/// While the disk is full a tick a second tries whether there is room again, whoever asks.
void Loop::look_for_room() {
  constexpr std::chrono::seconds kTryAgain{1};
  if (looks_for_room_ || !shell_.wants_room()) return;
  looks_for_room_ = true;
  room_timer_.expires_after(kTryAgain);
  room_timer_.async_wait([this](const error_code& error) {
    looks_for_room_ = false;
    if (error) return;
    shell_.post(engine::event::Tick{});
    soon();
  });
}

void Loop::watch_executor(Executor& executor, boost::asio::posix::stream_descriptor& fd) {
  fd.async_wait(Wait::wait_read, [this, &executor, &fd](const error_code& error) {
    if (error) return;
    take_reports(executor);
    watch_executor(executor, fd);
  });
}

void Loop::take_reports(Executor& executor) {
  for (executor::Report& report : executor.poll()) {
    if (const auto* started = std::get_if<executor::Started>(&report)) {
      shell_.post(engine::event::AttemptStarted{
          started->job, started->attempt, started->pid, started->watches, started->isolation});
    } else if (const auto* wanted = std::get_if<executor::Wanted>(&report)) {
      spdlog::info("job {} wants the GPU back that it lends", wanted->job.value);
      shell_.post(engine::event::GpuWanted{wanted->job, wanted->attempt});
    } else if (const auto* adopted = std::get_if<executor::Adopted>(&report)) {
      shell_.adopted(adopted->job, adopted->attempt, adopted->how);
    } else if (auto* moved = std::get_if<executor::Moved>(&report)) {
      log_move(*moved);
      shell_.post(engine::event::MoveEnded{moved->job, moved->attempt, std::move(moved->refused)});
      parts_.source->refresh();
    } else if (auto* parks = std::get_if<executor::Parks>(&report)) {
      log_parking(*parks);
      shell_.post(
          engine::event::ParkingChanged{parks->job, parks->attempt, std::move(parks->parked)});
      parts_.source->refresh();
    } else {
      auto& gone = std::get<executor::Gone>(report);
      gone.outcome.peak_gpu_memory = peaks_.take(gone.job);
      shell_.post(engine::event::AttemptEnded{gone.job, gone.attempt, std::move(gone.outcome)});
      parts_.source->refresh();
    }
  }
  // That is found out after the start.
  if (parks() != state_.nodes().at(parts_.node).machine.parks) {
    shell_.post(engine::event::NodesChanged{{reading()}});
  }
  soon();
}

/// Whether the GPU memory of suspended jobs can be taken to host memory here.
bool Loop::parks() const { return parts_.executors.front().executor->parks(parts_.node); }

void Loop::log_parking(const executor::Parks& parks) const {
  if (!parks.parked.refused.empty()) {
    const Job* job = state_.find(parks.job);
    const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
    const bool lends = running != nullptr && running->lends;
    spdlog::warn("job {} keeps {}: {}",
                 parks.job.value,
                 lends ? "the GPU that it leaves idle" : "its GPU memory while it is suspended",
                 printable(parks.parked.refused));
  } else if (parks.parked.how == Parking::Parked) {
    spdlog::info("the GPU memory of job {} is in host memory ({})",
                 parks.job.value,
                 memory_text(parks.parked.memory));
  } else {
    spdlog::info("job {} has its GPU memory back", parks.job.value);
  }
}

void Loop::log_move(const executor::Moved& moved) const {
  const Job* job = state_.find(moved.job);
  const auto* running = job == nullptr ? nullptr : std::get_if<Running>(&job->state);
  if (running == nullptr || !running->move) return;
  const GpuMove& move = *running->move;
  if (moved.refused.empty()) {
    spdlog::info("job {} moved from GPU {} to GPU {}", moved.job.value, move.from, move.to);
  } else {
    spdlog::warn(
        "job {} stays on GPU {}: {}", moved.job.value, move.from, printable(moved.refused));
  }
}

void Loop::watch_devices() {
  if (!device_fd_.is_open()) return;
  device_fd_.async_wait(Wait::wait_read, [this](const error_code& error) {
    if (error) return;
    take_reading();
    watch_devices();
  });
}

void Loop::take_reading() {
  const bool is_news = parts_.source->poll();
  if (reads_again_) reads_again_ = !parts_.source->refresh();
  if (!is_news) return;
  Machine fresh = reading();
  device_news_.see(fresh, parts_.config.gpus);
  if (parts_.source->interval() > std::chrono::milliseconds(0)) last_reading_ = os::now().wall;
  const auto threshold = parts_.config.gpus.resource_change_threshold;
  const Machine& before = state_.nodes().at(parts_.node).machine;
  if (threshold && !gflow::is_news(before, fresh, *threshold)) return;
  shell_.post(engine::event::NodesChanged{{std::move(fresh)}});
  soon();
}

Machine Loop::reading() {
  const HoldersOf holders_of = [this](int gpu) { return state_.holders(parts_.node, gpu); };
  Machine machine = machine_for_engine(
      parts_.indices.applied_to(parts_.source->machine(),
                                [&](int gpu) { return !holders_of(gpu).empty(); }),
      parts_.owner_of,
      holders_of);
  machine.name = parts_.node;
  machine.labels = parts_.config.labels;
  machine.parks = parks();
  machine.cannot_move = parts_.executors.front().executor->cannot_move(parts_.node);
  machine.isolation = parts_.executors.front().executor->isolates(parts_.node);
  leave_out_uncut(machine, parts_.config.policy);
  fill_memory(machine, parts_.config.gpus);
  peaks_.see(machine);
  return machine;
}

/// Devices that change by themselves are read again and again; a machine without such devices is
/// never woken.
void Loop::refresh_later() {
  auto interval = parts_.source->interval();
  if (interval <= std::chrono::milliseconds(0)) return;
  if (const auto& wanted = parts_.config.gpus.monitor_update_interval) interval = *wanted;
  refresh_timer_.expires_after(interval);
  refresh_timer_.async_wait([this](const error_code& error) {
    if (error) return;
    parts_.source->refresh();
    refresh_later();
  });
}

void Loop::watch_wall_timer() {
  wall_fd_.async_wait(Wait::wait_read, [this](const error_code& error) {
    if (error) return;
    parts_.wall_timer.drain();
    shell_.post(engine::event::Tick{});
    soon();
    watch_wall_timer();
  });
}

void Loop::watch_signals() {
  // Those that mean nothing here are taken, too: by default they would end it without a word.
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    error_code ignored;  // a signal that cannot be watched keeps its default action
    signals_.add(number, ignored);
  }
  signals_.async_wait([this](const error_code& error, int number) {
    if (error) return;
    if (number == SIGTERM || number == SIGINT) {
      stop();
      return;
    }
    if (number == SIGHUP) {
      if (auto done = reload(); !done) spdlog::error("{}, ignoring", done.error().message);
    }
    watch_signals();
  });
}

}  // namespace gflow::daemon
