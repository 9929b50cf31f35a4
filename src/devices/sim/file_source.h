// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "devices/source.h"
#include "os/fd.h"

namespace gflow::devices::sim {

/// Tells when a file changes, or when someone asks.
struct Watch {
  std::string name;  ///< the file's last component, as inotify names it
  os::Fd changes;    ///< inotify on its directory
  os::Fd asked;      ///< eventfd
  os::Fd ready;      ///< epoll over both

  static Result<Watch> of(const std::string& path);
  /// Takes in all that was told; true if the file has to be read again.
  bool take();
};

/// The machine of a file, followed with inotify: no timer, no reading while nothing changes.
class FileSource final : public Source {
 public:
  static Result<std::unique_ptr<Source>> open(const std::string& path);
  FileSource(std::string path, Watch watch, Machine machine)
      : path_(std::move(path)), watch_(std::move(watch)), machine_(std::move(machine)) {}

  [[nodiscard]] const Machine& machine() const override { return machine_; }
  [[nodiscard]] int fd() const override { return watch_.ready.get(); }
  bool poll() override;
  bool refresh() override;

 private:
  std::string path_;
  Watch watch_;
  Machine machine_;
};

}  // namespace gflow::devices::sim
