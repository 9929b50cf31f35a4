// SPDX-License-Identifier: Apache-2.0
#include "daemon/hpc_jobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "os/file.h"
#include "os/signals.h"

namespace gflow::daemon {
namespace {

/// Read by an exporter that may be another user's.
constexpr mode_t kReadable = 0644;
constexpr mode_t kOpen = 0755;

bool is_index(const std::string& name) { return parse_number(name).has_value(); }

Result<void> make_directory(const std::string& directory) {
  if (os::is_directory(directory)) return {};  // somebody else's, who knows who reads there
  GF_CHECK(os::make_directories(directory, kOpen));
  // The daemon's umask leaves less to others.
  if (::chmod(directory.c_str(), kOpen) != 0) return os::errno_error("set the mode of", directory);
  return {};
}

Result<void> remove_others(const std::string& directory, const std::map<int, std::string>& files) {
  for (const std::string& name : GF_TRY(os::names_in(directory))) {
    const bool is_ours = is_index(name) || (name.starts_with(".") && name.ends_with(".part"));
    const std::string path = directory + "/" + name;
    if (!is_ours || !os::is_file(path)) continue;
    const bool stays = is_index(name) && files.contains(static_cast<int>(*parse_number(name)));
    if (!stays && ::unlink(path.c_str()) != 0) return os::errno_error("remove", path);
  }
  return {};
}

Result<void> write_file(const std::string& directory, int gpu, const std::string& text) {
  const std::string path = fmt::format("{}/{}", directory, gpu);
  if (text.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return os::errno_error("remove", path);
    return {};
  }
  // No number: what dcgm-exporter reads in the meantime is the old one.
  const std::string part = fmt::format("{}/.{}.part", directory, gpu);
  {
    const os::Fd fd = GF_TRY(
        os::open_file(part, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, kReadable));
    if (::fchmod(fd.get(), kReadable) != 0) return os::errno_error("set the mode of", part);
    GF_CHECK(os::write_all(fd.get(), text));
  }
  if (::rename(part.c_str(), path.c_str()) != 0) return os::errno_error("rename", part);
  return {};
}

Result<void> write_all_of(const std::string& directory,
                          const std::map<int, std::string>& files,
                          bool is_first) {
  if (is_first) {
    GF_CHECK(make_directory(directory));
    GF_CHECK(remove_others(directory, files));
  }
  for (const auto& [gpu, text] : files) GF_CHECK(write_file(directory, gpu, text));
  return {};
}

}  // namespace

HpcJobs::HpcJobs() {
  const os::SignalsBlocked blocked;  // they are the loop's
  thread_ = std::thread([this] { serve(); });
}

HpcJobs::~HpcJobs() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void HpcJobs::set_directory(const std::string& directory) {
  if (directory == directory_) return;
  if (is_on()) {
    Task leave{directory_, {}, false};
    for (const auto& [gpu, text] : shown_) leave.files[gpu] = "";
    put(std::move(leave));
  }
  directory_ = directory;
  shown_.clear();
  if (is_on()) put({directory_, {}, true});
}

void HpcJobs::show(const std::map<int, std::vector<JobId>>& jobs) {
  if (!is_on()) return;
  Task task{directory_, {}, false};
  std::map<int, std::string> now;
  for (const auto& [gpu, ids] : jobs) {
    std::string text;
    for (const JobId id : ids) text += std::to_string(id.value) + "\n";
    if (!text.empty()) now[gpu] = std::move(text);
  }
  for (const auto& [gpu, text] : now) {
    const auto before = shown_.find(gpu);
    if (before == shown_.end() || before->second != text) task.files[gpu] = text;
  }
  for (const auto& [gpu, text] : shown_) {
    if (!now.contains(gpu)) task.files[gpu] = "";
  }
  shown_ = std::move(now);
  if (!task.files.empty()) put(std::move(task));
}

std::string HpcJobs::trouble() const {
  const std::scoped_lock lock(mutex_);
  return trouble_;
}

void HpcJobs::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
}

/// What waits for the same directory becomes one: only how it ends matters.
void HpcJobs::put(Task task) {
  {
    const std::scoped_lock lock(mutex_);
    if (!tasks_.empty() && tasks_.back().directory == task.directory && !task.is_first) {
      for (auto& [gpu, text] : task.files) tasks_.back().files[gpu] = std::move(text);
    } else {
      tasks_.push_back(std::move(task));
    }
  }
  changed_.notify_all();
}

void HpcJobs::serve() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    const Task task = std::move(tasks_.front());
    tasks_.erase(tasks_.begin());
    busy_ = true;
    lock.unlock();
    const auto done = write_all_of(task.directory, task.files, task.is_first);
    lock.lock();
    trouble_ = done ? "" : done.error().message;
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace gflow::daemon
