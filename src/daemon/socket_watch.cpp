// SPDX-License-Identifier: Apache-2.0
#include "daemon/socket_watch.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "base/text.h"
#include "os/fd.h"
#include "os/file.h"

namespace gflow::daemon {

using boost::system::error_code;

SocketWatch::SocketWatch(boost::asio::io_context& io, std::string path, Acts acts)
    : path_(std::move(path)), acts_(std::move(acts)), notify_(io), again_(io) {}

Result<void> SocketWatch::begin() {
  os::Fd notify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!notify.valid()) {
    spdlog::warn("a lost socket will not be noticed: inotify_init1 fails, ignoring");
    return acts_.listen();
  }
  error_code error;
  notify_.assign(notify.get(), error);
  if (error) return fail(Code::Failure, "watch the socket: " + error.message());
  (void)notify.release();  // the watcher's now
  GF_CHECK(make());
  wait();
  return {};
}

void SocketWatch::end() {
  error_code ignored;  // nothing is waited for any more, either way
  notify_.close(ignored);
  again_.cancel();
}

SocketWatch::File SocketWatch::file() const {
  struct stat facts{};
  if (::lstat(path_.c_str(), &facts) != 0) return {};
  return {facts.st_dev, facts.st_ino};
}

/// Anew each time: file and directory may be others now. Of the directory only where it goes: what
/// else happens in it, which may be /tmp, wakes nobody.
Result<void> SocketWatch::watch() {
  const std::string directory = path_.substr(0, path_.find_last_of('/'));
  const int notify = notify_.native_handle();
  constexpr std::uint32_t kGone = IN_DELETE_SELF | IN_MOVE_SELF;
  if (::inotify_add_watch(notify, directory.c_str(), kGone | IN_ONLYDIR) < 0) {
    return os::errno_error("watch", directory);
  }
  // A file that is unlinked has one link less, which is an attribute.
  if (::inotify_add_watch(notify, path_.c_str(), kGone | IN_ATTRIB) < 0) {
    return os::errno_error("watch", path_);
  }
  return {};
}

Result<void> SocketWatch::make() {
  GF_CHECK(acts_.make_directory());
  GF_CHECK(acts_.listen());
  made_ = file();
  if (auto watched = watch(); !watched) {
    spdlog::warn("a lost socket will not be noticed: {}, ignoring", watched.error().message);
  }
  if (file() == made_) return {};
  return fail(Code::WrongState, fmt::format("'{}' was removed again", printable(path_)));
}

void SocketWatch::wait() {
  notify_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [this](const error_code& error) {
                       if (error) return;
                       alignas(inotify_event) std::array<char, 4096> events;
                       while (::read(notify_.native_handle(), events.data(), events.size()) > 0) {
                         // What matters is what is there now.
                       }
                       look();
                       wait();
                     });
}

void SocketWatch::look() {
  if (made_ != File{} && file() == made_) return;
  make_again();
}

void SocketWatch::make_again() {
  constexpr std::chrono::seconds kRetryPause{1};
  again_.cancel();
  const auto made = make();
  if (made) {
    failed_ = false;
    return spdlog::warn("the socket '{}' was gone and is there again", printable(path_));
  }
  if (!std::exchange(failed_, true)) {
    spdlog::error("the socket '{}' is gone and cannot be made again: {}; it is tried each second",
                  printable(path_),
                  printable(made.error().message));
  }
  made_ = {};
  again_.expires_after(kRetryPause);
  again_.async_wait([this](const error_code& error) {
    if (!error) make_again();
  });
}

}  // namespace gflow::daemon
