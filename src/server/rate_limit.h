// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>

#include "base/time.h"

namespace gflow::server {

/// Counts how often somebody does something: after so many times within kWindow that one is told to
/// wait.
class RateLimit {
 public:
  static constexpr std::chrono::seconds kWindow{60};
  static constexpr std::size_t kMost = 10'000;  ///< of those remembered

  explicit RateLimit(std::size_t free) : free_(free) {}

  struct Verdict {
    std::chrono::seconds wait{0};  ///< 0: not at all yet
    bool is_first = false;         ///< of those who have to
  };
  /// Counts one.
  [[nodiscard]] Verdict count(const std::string& who, MonoTime now);

 private:
  struct Tries {
    MonoTime since{};
    std::size_t count = 0;
  };
  void forget(MonoTime now);

  std::size_t free_;
  std::map<std::string, Tries> tries_;
};

}  // namespace gflow::server
