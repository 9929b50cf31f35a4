// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "base/result.h"
#include "core/machine.h"
#include "devices/source.h"

namespace gflow::deviceplugin {

/// The devices of this node, also where their driver comes after this program. One thread.
class NodeDevices {
 public:
  /// `specification`: as of gflowd --devices. Errors: those of devices::open_source().
  [[nodiscard]] static Result<NodeDevices> open(const std::string& specification);

  [[nodiscard]] const Machine& machine() const { return source_->machine(); }
  /// Readable when poll() has a new reading; -1 if there never is one.
  [[nodiscard]] int fd() const { return source_->fd(); }
  /// Takes in what arrived; true if machine() changed.
  [[nodiscard]] bool poll() { return source_->poll(); }
  /// Asks for a new reading, which comes through fd(); true if there are devices now where there
  /// was no driver before.
  [[nodiscard]] bool read_again();

 private:
  NodeDevices(std::string specification, std::unique_ptr<devices::Source> source)
      : specification_(std::move(specification)), source_(std::move(source)) {}

  std::string specification_;
  std::unique_ptr<devices::Source> source_;
};

}  // namespace gflow::deviceplugin
