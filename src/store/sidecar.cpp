// SPDX-License-Identifier: Apache-2.0
#include "store/sidecar.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/file.h"

namespace gflow::store {
namespace {

constexpr std::uint64_t kBlock = 1000;
constexpr std::size_t kLineSize = 256;
constexpr std::string_view kNoDigest = "-";

Result<void> sync_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::absolute(path).parent_path().string();
  const os::Fd fd = GF_TRY(os::open_file(directory, O_RDONLY | O_DIRECTORY));
  if (::fsync(fd.get()) != 0) return os::errno_error("sync directory", directory);
  return {};
}

}  // namespace

Sidecar::Sidecar(os::Fd fd, std::string path, std::string boot_id)
    : fd_(std::move(fd)), path_(std::move(path)), boot_id_(std::move(boot_id)) {}

Result<Sidecar> Sidecar::open(const std::string& path, const std::string& boot_id) {
  const bool is_there = GF_TRY(os::is_there(path));
  if (!is_there) return Sidecar(os::Fd(), path, boot_id);
  Sidecar sidecar(GF_TRY(os::open_file(path, O_RDWR)), path, boot_id);
  sidecar.found_ = GF_TRY(sidecar.read());
  return sidecar;
}

JobId Sidecar::next_id() const {
  const bool same_boot = found_.boot_id == boot_id_;
  return JobId(same_boot ? found_.next_id : std::max(found_.next_id, found_.reserved));
}

Result<Sidecar::Line> Sidecar::read() const {
  std::array<char, kLineSize> buffer{};
  ssize_t got = 0;
  do {
    got = ::pread(fd_.get(), buffer.data(), buffer.size(), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return os::errno_error("read", path_);
  if (got != static_cast<ssize_t>(kLineSize)) return Line{};
  const std::string_view text = trim(std::string_view(buffer.data(), buffer.size()));
  const std::vector<std::string_view> words = split(text, ' ');
  const bool first_version = words.size() == 5 && words[0] == "gflow-ids-1";
  if (!first_version && (words.size() != 7 || words[0] != "gflow-ids-2")) return Line{};
  const auto next_id = parse_number(words[1]);
  const auto reserved = parse_number(words[2]);
  constexpr std::uint64_t kMaxId = std::uint64_t{1} << 62U;  // far from where SQLite's numbers end
  if (!next_id || !reserved || *next_id == 0 || std::max(*next_id, *reserved) > kMaxId)
    return Line{};
  Line line{.next_id = *next_id, .reserved = *reserved, .boot_id = std::string(words.back())};
  if (first_version) return line;
  const auto commits = parse_number(words[3]);
  if (!commits) return Line{};
  line.commits = *commits;
  if (words[5] != kNoDigest) line.digest = words[5];
  return line;
}

Result<void> Sidecar::write(const Line& line, Sync sync) {
  const std::string text = fmt::format("gflow-ids-2 {} {} {} {} {} {}",
                                       line.next_id,
                                       line.reserved,
                                       line.commits,
                                       line.in_order ? "closed" : "open",
                                       line.digest.empty() ? kNoDigest : line.digest,
                                       line.boot_id);
  const std::string padded = fmt::format("{:<{}}\n", text.substr(0, kLineSize - 1), kLineSize - 1);
  ssize_t put = 0;
  do {
    put = ::pwrite(fd_.get(), padded.data(), padded.size(), 0);
  } while (put < 0 && errno == EINTR);
  if (put != static_cast<ssize_t>(padded.size())) {
    if (put >= 0) errno = ENOSPC;
    return os::errno_error("write", path_);
  }
  if (sync == Sync::Yes && ::fdatasync(fd_.get()) != 0) return os::errno_error("sync", path_);
  now_ = line;
  return {};
}

Result<void> Sidecar::begin(JobId next_id, std::uint64_t commits) {
  if (!fd_.valid()) {
    fd_ = GF_TRY(os::open_file(path_, O_RDWR | O_CREAT));
    GF_CHECK(sync_directory_of(path_));
  }
  Line line{.next_id = next_id.value, .reserved = next_id.value + kBlock, .boot_id = boot_id_};
  line.commits = commits;
  return write(line, Sync::Yes);
}

Result<void> Sidecar::give_out(JobId next_id) {
  Line line = now_;
  line.next_id = next_id.value;
  if (next_id.value <= line.reserved) return write(line, Sync::No);
  line.reserved = next_id.value + kBlock;
  return write(line, Sync::Yes);
}

Result<void> Sidecar::committed(std::uint64_t commits) {
  Line line = now_;
  line.commits = commits;
  return write(line, Sync::No);
}

Result<void> Sidecar::end(const std::string& digest) {
  Line line = now_;
  line.reserved = line.next_id;
  line.in_order = true;
  line.digest = digest;
  return write(line, Sync::Yes);
}

}  // namespace gflow::store
