// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "os/clock.h"

namespace gflow::deviceplugin {

/// What is done again after a time.
class Repeated {
 public:
  explicit Repeated(std::chrono::milliseconds pause) : pause_(pause) {}
  /// Whether it is time again; then it is put off.
  [[nodiscard]] bool is_due() {
    const MonoTime now = os::now().mono;
    if (next_ && now < *next_) return false;
    next_ = now + pause_;
    return true;
  }
  void after(std::chrono::milliseconds pause) { next_ = os::now().mono + pause; }
  void now() { next_.reset(); }

 private:
  std::chrono::milliseconds pause_;
  std::optional<MonoTime> next_;
};

}  // namespace gflow::deviceplugin
