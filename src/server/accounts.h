// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/time.h"

namespace gflow::server {

/// Accounts of this machine, each looked up twice a minute at most: a directory service takes its
/// time for an answer, and the loop waits for it.
class Accounts {
 public:
  /// How long what was looked up is taken for true. Who looks as often sees within twice that what
  /// became of an account.
  static constexpr std::chrono::seconds kFresh{30};

  [[nodiscard]] std::optional<std::uint32_t> uid_of(const std::string& name, MonoTime now);
  /// Whether there still is an account of this number.
  [[nodiscard]] bool has(std::uint32_t uid, MonoTime now);

 private:
  template <typename Value>
  struct Known {
    Value value;
    MonoTime at;
  };
  std::map<std::string, Known<std::optional<std::uint32_t>>, std::less<>> uids_;
  std::map<std::uint32_t, Known<bool>> there_;
};

}  // namespace gflow::server
