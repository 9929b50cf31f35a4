// SPDX-License-Identifier: Apache-2.0
#include "devices/nvml/source.h"
#include "devices/nvml/device_nodes.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>

#include "devices/nvml/machine.h"
#include "os/clock.h"
#include "os/file.h"

namespace gflow::devices::nvml {
namespace {

constexpr int kMissesToStale = 3;
constexpr int kMaxDoublings = 6;     // the longest pause is 64 deadlines: 5 minutes
constexpr std::size_t kMaxLeft = 3;  // probes that not even SIGKILL ends: the driver is wedged
constexpr int kGoodbyeMilliseconds = 1000;

std::string milliseconds_text(std::chrono::milliseconds time) {
  return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000);
}

void wait_readable(int fd, std::chrono::milliseconds most) {
  pollfd wanted{fd, POLLIN, 0};
  (void)::poll(&wanted, 1, static_cast<int>(most.count()));  // the caller looks for itself
}

}  // namespace

Result<std::unique_ptr<NvmlSource>> NvmlSource::open(const SourceOptions& options) {
  os::Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!timer.valid()) return os::errno_error("timerfd_create");
  os::Fd ready(::epoll_create1(EPOLL_CLOEXEC));
  if (!ready.valid()) return os::errno_error("epoll_create");
  auto source = std::make_unique<NvmlSource>(options, std::move(timer), std::move(ready));
  const MonoTime until = os::now().mono + options.first_answer;
  source->start();
  while (source->state_ == State::Asked) {
    const auto left = until - os::now().mono;
    wait_readable(source->fd(), std::max(left, std::chrono::milliseconds(0)));
    source->poll();
  }
  return source;
}

NvmlSource::NvmlSource(SourceOptions options, os::Fd timer, os::Fd ready)
    : options_(std::move(options)), timer_(std::move(timer)), ready_(std::move(ready)) {
  machine_.source = "nvml";
  machine_.gpu_nodes["nvidia"] = {nvidia_gpus()};
  follow(timer_.get());
}

/// A probe that waits for a question ends at once; one that is in the driver is not waited for.
NvmlSource::~NvmlSource() {
  if (!probe_) return;
  probe_->hang_up();
  if (state_ == State::Idle)
    wait_readable(probe_->process(), std::chrono::milliseconds(kGoodbyeMilliseconds));
  (void)probe_->has_ended();
}

void NvmlSource::follow(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  (void)::epoll_ctl(ready_.get(), EPOLL_CTL_ADD, fd, &event);  // fails only without memory
}

void NvmlSource::set_timer(std::chrono::milliseconds after) {
  itimerspec setting{};
  setting.it_value.tv_sec = static_cast<time_t>(after.count() / 1000);
  setting.it_value.tv_nsec = static_cast<long>(after.count() % 1000) * 1'000'000;
  (void)::timerfd_settime(timer_.get(), 0, &setting, nullptr);  // fails only for a wrong argument
}

void NvmlSource::start() {
  auto started = Probe::start(options_);
  if (!started) return missed(started.error().message);
  probe_.emplace(std::move(*started));
  fresh_ = true;
  follow(probe_->channel());
  ask();
}

void NvmlSource::ask() {
  state_ = State::Asked;
  set_timer(fresh_ ? std::max(options_.first_answer, options_.deadline) : options_.deadline);
  probe_->ask();
}

bool NvmlSource::refresh() {
  if (state_ != State::Idle) return false;
  ask();
  return true;
}

bool NvmlSource::poll() {
  const Machine before = machine_;
  std::erase_if(left_, [](const Probe& probe) { return probe.has_ended(); });
  if (probe_) hear();
  std::uint64_t rings = 0;
  if (::read(timer_.get(), &rings, sizeof rings) == sizeof rings) timer_rang();
  return machine_ != before;
}

void NvmlSource::hear() {
  const Probe::Heard heard = probe_->hear();
  for (const std::string& line : heard.lines) {
    if (probe_) take(line);
  }
  if (heard.over && probe_) missed("the program that reads the NVIDIA driver ended (gflow-gpumon)");
}

void NvmlSource::take(const std::string& line) {
  const auto report = from_line(line);
  if (!report) return missed(report.error().message);
  state_ = State::Idle;
  fresh_ = false;
  answered_ = true;
  set_timer(std::chrono::milliseconds(0));
  if (report->error.empty()) {
    misses_ = 0;
    machine_ = machine_after(machine_, *report);
    return;
  }
  // The probe is well and the driver is not: asking again at the next interval is all there is to
  // do.
  machine_.note = report->error;
  if (++misses_ >= kMissesToStale) machine_ = machine_stale(machine_, report->error);
}

void NvmlSource::timer_rang() {
  if (state_ == State::Asked) {
    missed(fmt::format("the NVIDIA driver does not answer within {}",
                       milliseconds_text(fresh_ ? options_.first_answer : options_.deadline)));
  } else if (state_ == State::Paused) {
    for (const Probe& probe : left_) probe.kill();
    if (left_.size() < kMaxLeft) return start();
    pause();
  }
}

void NvmlSource::missed(const std::string& why) {
  ++misses_;
  leave_probe();
  pause();
  machine_.note = why;
  if (misses_ >= kMissesToStale) machine_ = machine_stale(machine_, why);
}

void NvmlSource::leave_probe() {
  if (!probe_) return;
  probe_->hang_up();
  follow(probe_->process());
  left_.push_back(std::move(*probe_));
  probe_.reset();
}

void NvmlSource::pause() {
  state_ = State::Paused;
  const int doublings = std::clamp(misses_ - 1, 0, kMaxDoublings);
  set_timer(options_.deadline * (1 << doublings));
}

}  // namespace gflow::devices::nvml
