// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace gflow {

/// A number that names a thing of kind Tag and cannot be mistaken for another kind's. 0 names
/// nothing.
template <typename Tag>
struct Id {
  std::uint64_t value = 0;

  constexpr Id() = default;
  constexpr explicit Id(std::uint64_t v) : value(v) {}
  [[nodiscard]] constexpr bool is_set() const { return value != 0; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

}  // namespace gflow

template <typename Tag>
struct std::hash<gflow::Id<Tag>> {
  std::size_t operator()(gflow::Id<Tag> id) const noexcept {
    return std::hash<std::uint64_t>{}(id.value);
  }
};
