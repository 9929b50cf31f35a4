// SPDX-License-Identifier: Apache-2.0
#include "server/log_reader.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>
#include <utility>

#include "base/translate.h"
#include "core/file_budget.h"
#include "os/file.h"
#include "os/host.h"
#include "os/signals.h"

namespace gflow::server {
namespace {

void wake(const os::Fd& fd) {
  const std::uint64_t one = 1;
  (void)!::write(fd.get(), &one, sizeof one);  // a full counter wakes as well
}

/// In milliseconds, as poll() takes it.
int left_until(std::chrono::steady_clock::time_point time) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(time - std::chrono::steady_clock::now());
  return std::max(0, static_cast<int>(left.count()));
}

}  // namespace

LogReader::LogReader() {
  core_->places = file_budget(os::open_file_limit()).logs;
  core_->wake = os::Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!core_->wake.valid()) throw std::system_error(errno, std::generic_category(), "eventfd");
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([core = core_] { serve(*core); });
}

LogReader::~LogReader() {
  {
    const std::scoped_lock lock(core_->mutex);
    core_->stop = true;
  }
  wake(core_->wake);
  thread_.join();
}

/// Called with the mutex held.
Result<void> LogReader::open_notify(Core& core) {
  if (core.notify.valid()) return {};
  core.notify = os::Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (core.notify.valid()) return {};
  return fail(Code::Unreachable,
              tr_format("logs cannot be followed: {}; what there is of them can be read",
                        os::errno_error("inotify_init1").error().message));
}

void LogReader::run(std::uint32_t uid, std::function<void()> work) {
  const std::scoped_lock lock(core_->mutex);
  core_->queue.push(uid, std::move(work));
  wake(core_->wake);
}

Result<std::shared_ptr<void>> LogReader::take_place() {
  const std::scoped_lock lock(core_->mutex);
  if (core_->places == 0) {
    return fail(Code::Unreachable, tr("as many logs are read as may be at once; try again"));
  }
  --core_->places;
  const auto give_back = [left = std::weak_ptr(core_)](void*) {
    const auto core = left.lock();
    if (!core) return;
    const std::scoped_lock lock_again(core->mutex);
    ++core->places;
  };
  return std::shared_ptr<void>(this, give_back);
}

Result<void> LogReader::can_follow() {
  const std::scoped_lock lock(core_->mutex);
  GF_CHECK(open_notify(*core_));
  wake(core_->wake);  // it is waited for from now on
  return {};
}

Result<std::shared_ptr<void>> LogReader::on_growth(int file, std::function<void()> then) {
  const std::scoped_lock lock(core_->mutex);
  GF_CHECK(open_notify(*core_));
  // The file that is open, whatever has its name by now.
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  const int watch = ::inotify_add_watch(core_->notify.get(), path.c_str(), IN_MODIFY | IN_ONESHOT);
  if (watch == kUnwatched) wake(core_->wake);  // there may be no more of them
  const std::uint64_t number = core_->next++;
  core_->waiters[watch].emplace(number, std::move(then));
  const auto end = [watch, number, left = std::weak_ptr(core_)](void*) {
    if (const auto core = left.lock()) let_go(*core, watch, number);
  };
  return std::shared_ptr<void>(this, end);
}

void LogReader::let_go(Core& core, int watch, std::uint64_t number) {
  const std::scoped_lock lock(core.mutex);
  const auto found = core.waiters.find(watch);
  if (found == core.waiters.end()) return;
  found->second.erase(number);
  if (!found->second.empty()) return;
  core.waiters.erase(found);
  if (watch != kUnwatched) (void)::inotify_rm_watch(core.notify.get(), watch);
}

void LogReader::serve(Core& core) {
  constexpr std::chrono::seconds kLookAgain{1};
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> look_at;  // at what is not watched
  while (true) {
    work_off(core);
    int notify = -1;  // which poll() passes over
    {
      const std::scoped_lock lock(core.mutex);
      if (core.stop) return;
      notify = core.notify.get();
      const bool has_any = core.waiters.contains(kUnwatched);
      if (!has_any) look_at.reset();
      if (has_any && !look_at) look_at = Clock::now() + kLookAgain;
    }
    std::array<pollfd, 2> fds = {pollfd{notify, POLLIN, 0}, pollfd{core.wake.get(), POLLIN, 0}};
    if (::poll(fds.data(), fds.size(), look_at ? left_until(*look_at) : -1) < 0) continue;
    std::uint64_t count = 0;
    (void)!::read(core.wake.get(), &count, sizeof count);  // before looking at what there is
    if (notify >= 0) tell_of_growth(core);
    if (look_at && Clock::now() >= *look_at) {
      look_at.reset();
      tell_unwatched(core);
    }
  }
}

void LogReader::tell_unwatched(Core& core) {
  Waiters told;
  {
    const std::scoped_lock lock(core.mutex);
    if (auto found = core.waiters.extract(kUnwatched)) told.insert(std::move(found));
  }
  tell(told);
}

void LogReader::tell(const Waiters& waiters) {
  for (const auto& [watch, of_it] : waiters) {
    for (const auto& [number, then] : of_it) then();
  }
}

void LogReader::work_off(Core& core) {
  std::unique_lock lock(core.mutex);
  while (!core.stop && core.queue.ready()) {
    FairQueue::Work work = core.queue.pop();
    lock.unlock();
    work();
    work = nullptr;  // what it holds is let go of here, too
    lock.lock();
  }
}

void LogReader::tell_of_growth(Core& core) {
  alignas(inotify_event) std::array<char, 4096> events;
  while (true) {
    const ssize_t got = ::read(core.notify.get(), events.data(), events.size());
    if (got <= 0) return;
    Waiters told;
    {
      const std::scoped_lock lock(core.mutex);
      for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
        const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
        at += sizeof(inotify_event) + event->len;
        // Some were lost: all look.
        if ((event->mask & IN_Q_OVERFLOW) != 0) told.merge(core.waiters);
        if (auto found = core.waiters.extract(event->wd)) told.insert(std::move(found));
      }
    }
    tell(told);
  }
}

}  // namespace gflow::server
