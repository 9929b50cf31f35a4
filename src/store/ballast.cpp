// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "os/file.h"
#include "store/store.h"

namespace gflow::store {
namespace {

/// Left over where the rest was set aside, so that it is not called upon at once.
constexpr Memory kRoomBeside = Memory::mib(1);

Memory length(const std::string& path) {
  struct stat facts{};
  return ::stat(path.c_str(), &facts) == 0 ? Memory{facts.st_size} : Memory{};
}

/// What of the file is allocated.
Memory allocated(const std::string& path) {
  constexpr std::int64_t kStatBlock = 512;  // stat(2): st_blocks counts these, whatever the device
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return {};
  return {std::min<std::int64_t>(facts.st_size, facts.st_blocks * kStatBlock)};
}

}  // namespace

Ballast::Ballast(std::string path, Memory size) : path_(std::move(path)), size_(size) {
  // Failing keeps more than was asked for until the next start, and harms nothing else.
  if (length(path_) > size_) (void)::truncate(path_.c_str(), size_.bytes);
  restore();
}

Memory Ballast::missing() const { return std::max(Memory{}, size_ - allocated(path_)); }

Result<void> Ballast::check() const {
  const Memory free = disk_free();
  const bool was_held = length(path_) >= size_;
  if (held() || was_held || free < kRoomBeside) return {};
  return fail(
      Code::Exhausted,
      fmt::format("[store] ballast is {}, and {} are free on the disk of '{}': set less, or "
                  "make room",
                  memory_text(size_),
                  memory_text(free),
                  printable(path_)));
}

bool Ballast::held() const { return allocated(path_) >= size_; }

int Ballast::steps_left() const {
  const std::int64_t step = std::max<std::int64_t>(size_.bytes / kSteps, 1);
  return static_cast<int>(std::min<std::int64_t>(allocated(path_).bytes / step, kSteps));
}

void Ballast::release_step() {
  const std::int64_t left = size_.bytes / kSteps * (steps_left() - 1);
  // Failing changes nothing: there is as much room as before.
  // A hole in the place of what is given back tells that all of it was here once.
  (void)::truncate(path_.c_str(), left);
  (void)::truncate(path_.c_str(), size_.bytes);
}

void Ballast::restore() {
  if (held() || disk_free() < missing() + std::min(size_, kRoomBeside)) return;
  const auto fd = os::open_file(path_, O_WRONLY | O_CREAT);
  if (fd && ::posix_fallocate(fd->get(), 0, size_.bytes) == 0) return;
  ::unlink(path_.c_str());
}

Memory Ballast::disk_free() const {
  const std::string directory = std::filesystem::absolute(path_).parent_path().string();
  struct statvfs facts{};
  if (::statvfs(directory.c_str(), &facts) != 0) return Memory{0};
  return Memory{static_cast<std::int64_t>(facts.f_bavail * facts.f_frsize)};
}

}  // namespace gflow::store
