// SPDX-License-Identifier: Apache-2.0
#include "daemon/remover.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "os/fd.h"
#include "os/signals.h"

namespace gflow::daemon {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { (void)::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Directory open_directory(int parent, const std::string& name) {
  os::Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return nullptr;
  Directory directory(::fdopendir(fd.get()));
  if (directory != nullptr) (void)fd.release();
  return directory;
}

/// Removes what can be removed at once, and returns the directories that are not empty.
std::vector<std::string> remove_files(DIR* directory, const std::atomic<bool>& stop) {
  std::vector<std::string> left;
  const int fd = ::dirfd(directory);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this directory open
  while (const dirent* entry = ::readdir(directory)) {
    if (stop) break;
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::unlinkat(fd, entry->d_name, 0) == 0) continue;
    if (::unlinkat(fd, entry->d_name, AT_REMOVEDIR) != 0) left.emplace_back(name);
  }
  return left;
}

/// Depth first without recursion: how deep a job's directories lie is the job's choice. A directory
/// is open for each level, so that one nested deeper than there are descriptors stays.
void remove_tree(int parent, const std::string& name, const std::atomic<bool>& stop) {
  struct Level {
    Directory directory;
    std::string name;
    std::vector<std::string> left;
  };
  std::vector<Level> levels;
  const auto enter = [&](int above, std::string below) {
    Directory directory = open_directory(above, below);
    if (directory == nullptr) return;
    std::vector<std::string> left = remove_files(directory.get(), stop);
    levels.push_back({std::move(directory), std::move(below), std::move(left)});
  };
  enter(parent, name);
  while (!levels.empty() && !stop) {
    Level& level = levels.back();
    if (!level.left.empty()) {
      std::string next = std::move(level.left.back());
      level.left.pop_back();
      enter(::dirfd(level.directory.get()), std::move(next));
      continue;
    }
    const std::string done = std::move(level.name);
    levels.pop_back();
    const int above = levels.empty() ? parent : ::dirfd(levels.back().directory.get());
    (void)::unlinkat(above, done.c_str(), AT_REMOVEDIR);  // one that is not empty stays
  }
}

}  // namespace

Remover::Remover() {
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([this] { serve(); });
}

Remover::~Remover() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Remover::remove(std::string path) {
  {
    const std::scoped_lock lock(mutex_);
    paths_.push_back(std::move(path));
  }
  changed_.notify_all();
}

void Remover::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return paths_.empty() && !busy_; });
}

void Remover::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !paths_.empty(); });
    if (stop_) return;
    const std::string path = std::move(paths_.front());
    paths_.pop_front();
    busy_ = true;
    lock.unlock();
    if (::unlinkat(AT_FDCWD, path.c_str(), 0) != 0) remove_tree(AT_FDCWD, path, stop_);
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace gflow::daemon
