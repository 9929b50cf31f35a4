// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "os/file.h"
#include "store/store.h"

namespace gflow::store {
namespace {

/// What of the file is allocated.
Memory allocated(const std::string& path) {
  constexpr std::int64_t kStatBlock = 512;  // stat(2): st_blocks counts these, whatever the device
  struct stat facts{};
  if (::stat(path.c_str(), &facts) != 0) return {};
  return {std::min<std::int64_t>(facts.st_size, facts.st_blocks * kStatBlock)};
}

}  // namespace

Ballast::Ballast(std::string path, Memory size) : path_(std::move(path)), size_(size) { restore(); }

bool Ballast::held() const { return allocated(path_) >= size_; }

int Ballast::steps_left() const {
  const std::int64_t step = std::max<std::int64_t>(size_.bytes / kSteps, 1);
  return static_cast<int>(std::min<std::int64_t>(allocated(path_).bytes / step, kSteps));
}

void Ballast::release_step() {
  const std::int64_t left = size_.bytes / kSteps * (steps_left() - 1);
  // Failing changes nothing: there is as much room as before.
  (void)::truncate(path_.c_str(), left);
}

void Ballast::restore() {
  const Memory missing = size_ - allocated(path_);
  if (missing <= Memory{} || disk_free() < missing + size_) return;
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
