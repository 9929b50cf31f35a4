// SPDX-License-Identifier: Apache-2.0
#include "devices/sim/file_source.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <span>

#include "devices/sim/machine_file.h"
#include "devices/sim/made_instances.h"
#include "os/file.h"

namespace gflow::devices::sim {
namespace {

std::string directory_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Result<void> add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) return os::errno_error("epoll_ctl");
  return {};
}

Result<Machine> read_machine_file(const std::string& path) {
  return machine_of(GF_TRY(load_machine(path)), "sim:" + path);
}

/// True if one of the events is about the file, or if events were lost.
bool names_file(std::span<const char> events, const std::string& name) {
  while (events.size() >= sizeof(inotify_event)) {
    inotify_event event{};
    std::memcpy(&event, events.data(), sizeof event);
    const char* changed = events.data() + sizeof event;  // ended by NUL, not there if len is 0
    if ((event.mask & IN_Q_OVERFLOW) != 0 ||
        (event.len > 0 && (name == changed || made_file(name) == changed))) {
      return true;
    }
    events = events.subspan(sizeof event + event.len);
  }
  return false;
}

}  // namespace

/// Watches the directory, as editors replace a file by renaming another one over it.
Result<Watch> Watch::of(const std::string& path) {
  Watch watch;
  watch.name = path.substr(path.find_last_of('/') + 1);
  watch.changes.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  watch.asked.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  watch.ready.reset(::epoll_create1(EPOLL_CLOEXEC));
  if (!watch.changes.valid()) return os::errno_error("inotify_init");
  if (!watch.asked.valid()) return os::errno_error("eventfd");
  if (!watch.ready.valid()) return os::errno_error("epoll_create");
  const std::string directory = directory_of(path);
  constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
  if (::inotify_add_watch(watch.changes.get(), directory.c_str(), kEvents) < 0) {
    return os::errno_error("watch", directory);
  }
  GF_CHECK(add(watch.ready.get(), watch.changes.get()));
  GF_CHECK(add(watch.ready.get(), watch.asked.get()));
  return watch;
}

bool Watch::take() {
  std::uint64_t times = 0;
  bool told = ::read(asked.get(), &times, sizeof times) == sizeof times;
  std::array<char, 16384> buffer{};
  ssize_t got = 0;
  while ((got = ::read(changes.get(), buffer.data(), buffer.size())) > 0) {
    told |= names_file(std::span(buffer).first(static_cast<std::size_t>(got)), name);
  }
  return told;
}

Result<std::unique_ptr<Source>> FileSource::open(const std::string& path) {
  Watch watch = GF_TRY(Watch::of(path));  // before the first reading: no change falls between
  Machine machine = GF_TRY(read_machine_file(path));
  return std::make_unique<FileSource>(path, std::move(watch), std::move(machine));
}

bool FileSource::poll() {
  if (!watch_.take()) return false;
  auto fresh = read_machine_file(path_);
  Machine next = fresh ? std::move(*fresh) : machine_;
  if (!fresh) next.note = "the machine file is not taken over: " + fresh.error().message;
  if (next == machine_) return false;
  machine_ = std::move(next);
  return true;
}

bool FileSource::refresh() {
  const std::uint64_t once = 1;
  // Fails only if 2^64-1 requests are waiting already.
  [[maybe_unused]] const ssize_t written = ::write(watch_.asked.get(), &once, sizeof once);
  return true;
}

}  // namespace gflow::devices::sim
