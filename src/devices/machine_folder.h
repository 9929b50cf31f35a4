// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>
#include <stdlib.h>

#include <stdexcept>
#include <string>

#include "devices/source.h"
#include "os/file.h"

/// For tests only.
namespace gflow::devices::testing {

/// A folder of its own with a machine file in it, removed at the end.
class MachineFolder {
 public:
  MachineFolder() {
    if (::mkdtemp(folder_.data()) == nullptr) throw std::runtime_error("mkdtemp");
  }
  ~MachineFolder() { (void)os::remove_tree(folder_); }
  MachineFolder(const MachineFolder&) = delete;
  MachineFolder& operator=(const MachineFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return folder_; }
  [[nodiscard]] std::string file() const { return folder_ + "/machine.yaml"; }
  /// Replaces the file as editors do, by renaming a new one over it.
  void write(const std::string& text) const {
    const std::string fresh = folder_ + "/fresh";
    if (!os::write_file(fresh, text) || ::rename(fresh.c_str(), file().c_str()) != 0) {
      throw std::runtime_error("write " + file());
    }
  }

 private:
  std::string folder_ = "/tmp/gflow-devices-XXXXXX";
};

/// Follows a source by its descriptor until the machine is as wanted. False if it stays silent for
/// much longer than anything here takes.
template <typename Wanted>
bool reaches(Source& source, Wanted wanted) {
  constexpr int kSilenceMilliseconds = 30'000;
  while (!wanted(source.machine())) {
    pollfd watched{source.fd(), POLLIN, 0};
    if (::poll(&watched, 1, kSilenceMilliseconds) != 1) return false;
    (void)source.poll();
  }
  return true;
}

}  // namespace gflow::devices::testing
