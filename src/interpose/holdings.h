// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/abi.h"

/// What this process got of the driver and was charged for, so that it is given back when it frees
/// it. Any thread.
namespace gflow::interpose {

struct Charge {
  std::size_t device = 0;  ///< of the account
  std::uint64_t bytes = 0;
};

/// What a driver tells apart by its handle.
enum class Kind : std::uint8_t { Pointer, Array, MipmappedArray };

/// The rest of the way when something does not fit: what pools have given back to the driver
/// meanwhile, then what processes had that have ended. False, and counted, if there is no room.
[[nodiscard]] bool reserve(std::size_t device, std::uint64_t bytes);
/// As much more or less as it turned out to be; false if there is no room for the more.
[[nodiscard]] bool adjust(Charge& charge, std::uint64_t bytes);
void refund(const Charge& charge);

/// It belongs to the calling thread's context, and goes with it.
void hold(Kind kind, std::uint64_t handle, const Charge& charge);
/// Takes it out, before or after the driver was told; empty if it was never charged.
[[nodiscard]] std::optional<Charge> release(Kind kind, std::uint64_t handle);
/// The context is gone, and all that was in it.
void drop_context(cuda::abi::Context context);

/// In the child of a fork.
void forget_holdings();

/// Whole pages of what a driver gives out at least.
[[nodiscard]] constexpr std::uint64_t rounded(std::uint64_t bytes, std::uint64_t unit) {
  const std::uint64_t more = bytes % unit == 0 ? 0 : unit - bytes % unit;
  return bytes > ~std::uint64_t{0} - more ? ~std::uint64_t{0} : bytes + more;
}
constexpr std::uint64_t kUnit = 512;

/// While the driver is called from a hook, what it calls itself is not charged again.
class InDriver {
 public:
  InDriver() { ++depth(); }
  ~InDriver() { --depth(); }
  InDriver(const InDriver&) = delete;
  InDriver& operator=(const InDriver&) = delete;
  [[nodiscard]] static bool is_inside() { return depth() > 0; }

 private:
  static int& depth();
};

/// Calls a function of the driver, which may not have it.
template <typename... Parameters, typename... Arguments>
cuda::abi::Result call(cuda::abi::Result (*function)(Parameters...), Arguments... arguments) {
  if (function == nullptr) return cuda::abi::kNotFound;
  const InDriver inside;
  return function(arguments...);
}

}  // namespace gflow::interpose
