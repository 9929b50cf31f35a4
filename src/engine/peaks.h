// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/memory.h"

namespace gflow::engine {

/// What earlier runs of a command used of a GPU's memory.
struct Peak {
  Memory most;   ///< on one device
  int runs = 0;  ///< that told

  friend bool operator==(const Peak&, const Peak&) = default;
};

/// Learns how much device memory commands take, by user and program: "python train.py --lr 0.1" and
/// "python train.py --lr 0.2" are one. Holds the 10,000 last used; one thread owns it.
class Peaks {
 public:
  static constexpr std::size_t kMax = 10'000;

  /// An attempt ended having used so much on one of its devices; 0 is not known, and ignored.
  void add(std::uint32_t uid, std::string_view command, Memory peak);
  [[nodiscard]] std::optional<Peak> find(std::uint32_t uid, std::string_view command) const;

 private:
  using Key = std::pair<std::uint32_t, std::string>;
  struct Known {
    Peak peak;
    std::uint64_t used = 0;
  };
  std::map<Key, Known> known_;
  std::map<std::uint64_t, Key> by_use_;
  std::uint64_t clock_ = 0;
};

/// What of a command line names the work: its words up to the first option, at most two.
[[nodiscard]] std::string program_of(std::string_view command);

}  // namespace gflow::engine
