// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <mutex>
#include <optional>
#include <string>

#include "base/result.h"
#include "kube/access.h"

namespace gflow::kube {

/// What a request shows of who asks.
struct Identity {
  std::string token;        ///< "" if there is none
  std::string certificate;  ///< PEM; "" if there is none
  std::string key;

  friend bool operator==(const Identity&, const Identity&) = default;
};

/// Who asks, for as long as that is so: a token in a file is read again each minute, a plugin is
/// asked again when what it said ends. Any thread may use it.
class Credentials {
 public:
  explicit Credentials(const Access& access) : access_(access) {}

  /// Errors: those of the file or the plugin, with what it printed.
  [[nodiscard]] Result<Identity> identity();
  /// The server did not know who asked (401): what is kept is asked for anew.
  void refused();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] Result<Identity> fresh();

  const Access& access_;
  std::mutex mutex_;
  std::optional<Identity> kept_;
  Clock::time_point until_{};
};

}  // namespace gflow::kube
