// SPDX-License-Identifier: Apache-2.0
#include "shim/io.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace gflow::shim {
namespace {

std::int64_t clock_ns(clockid_t id) {
  timespec time{};
  (void)::clock_gettime(id, &time);  // cannot fail for these clocks
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

std::string error_name(int number) {
  const char* text = ::strerrordesc_np(number);
  return text == nullptr ? "error " + std::to_string(number) : text;
}

std::string in_quotes(std::string_view text) { return std::string("'").append(text).append("'"); }

std::unexpected<Trouble> errno_trouble(std::string_view doing) {
  const int number = errno;
  return std::unexpected(Trouble{std::string(doing) + ": " + error_name(number), number});
}

std::optional<std::string> read_whole(int fd) {
  std::string content;
  std::array<char, 16384> buffer{};
  while (true) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) return content;
    content.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::string> read_path(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  return read_whole(fd.get());
}

bool write_whole(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t put = ::write(fd, data.data(), data.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return false;
    data.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

bool write_path(const std::string& path, std::string_view data) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && write_whole(fd.get(), data);
}

std::int64_t monotonic_ns() { return clock_ns(CLOCK_MONOTONIC); }
std::int64_t wall_ms() { return clock_ns(CLOCK_REALTIME) / 1'000'000; }

}  // namespace gflow::shim
