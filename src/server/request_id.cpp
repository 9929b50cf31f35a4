// SPDX-License-Identifier: Apache-2.0
#include "server/request_id.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <random>

namespace gflow::server {
namespace {

constexpr std::size_t kMaxLength = 64;

bool is_well_formed(std::string_view id) {
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !id.empty() && id.size() <= kMaxLength &&
         id.find_first_not_of(kLetters) == std::string_view::npos;
}

/// Not the same as after a restart, and counted on from there.
std::uint64_t next_number() {
  static std::atomic<std::uint64_t> next = [] {
    std::random_device random;
    return std::uint64_t{random()} << 32;
  }();
  return next++;
}

}  // namespace

std::string request_id_of(std::string_view given) {
  if (is_well_formed(given)) return std::string(given);
  return fmt::format("{:016x}", next_number());
}

}  // namespace gflow::server
