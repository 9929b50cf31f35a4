// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <utility>

#include "os/file.h"
#include "store/store.h"

namespace gflow::store {
namespace {

/// Allocates the blocks; a file that cannot have all of them is not left behind.
void allocate(const std::string& path, Memory size) {
  const auto fd = os::open_file(path, O_WRONLY | O_CREAT);
  if (fd && ::posix_fallocate(fd->get(), 0, size.bytes) == 0) return;
  ::unlink(path.c_str());
}

}  // namespace

Ballast::Ballast(std::string path, Memory size) : path_(std::move(path)), size_(size) {
  if (!held()) allocate(path_, size_);
}

bool Ballast::held() const {
  constexpr std::int64_t kStatBlock = 512;  // stat(2): st_blocks counts these, whatever the device
  struct stat facts{};
  return ::stat(path_.c_str(), &facts) == 0 && facts.st_size >= size_.bytes &&
         facts.st_blocks * kStatBlock >= size_.bytes;
}

void Ballast::release() { ::unlink(path_.c_str()); }

void Ballast::restore() {
  if (!held() && disk_free() >= size_ + size_) allocate(path_, size_);
}

Memory Ballast::disk_free() const {
  const std::string directory = std::filesystem::absolute(path_).parent_path().string();
  struct statvfs facts{};
  if (::statvfs(directory.c_str(), &facts) != 0) return Memory{0};
  return Memory{static_cast<std::int64_t>(facts.f_bavail * facts.f_frsize)};
}

}  // namespace gflow::store
