// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

/// Quantities of Kubernetes as capacities of devices are: exact, where kube/quantity.h rounds.
namespace gflow::claims {

/// Thousand-millionths of one: what a quantity of Kubernetes may be in parts of, and the most of
/// which there can be (2^63 - 1) fits.
struct Amount {
  __int128 nanos = 0;

  friend bool operator==(const Amount& a, const Amount& b) { return a.nanos == b.nanos; }
  friend std::strong_ordering operator<=>(const Amount& a, const Amount& b) {
    if (a.nanos == b.nanos) return std::strong_ordering::equal;
    return a.nanos < b.nanos ? std::strong_ordering::less : std::strong_ordering::greater;
  }
};

/// As many as a number says.
[[nodiscard]] Amount whole(std::int64_t number);
/// As Kubernetes parses it: what is smaller than a thousand-millionth is rounded away from zero,
/// and more than there can be is the most. Errors: Usage for what is none.
[[nodiscard]] Result<Amount> read_amount(std::string_view text);
/// As Kubernetes reads it again: "8Gi", "1500m".
[[nodiscard]] std::string to_text(const Amount& amount);
/// What is more, or less, than there can be is the most, or the least.
[[nodiscard]] Amount sum(const Amount& a, const Amount& b);
[[nodiscard]] Amount difference(const Amount& a, const Amount& b);
/// In whole units, rounded away from zero, as Quantity.Value() of Kubernetes is.
[[nodiscard]] std::int64_t rounded(const Amount& amount);
[[nodiscard]] bool is_whole(const Amount& amount);

}  // namespace gflow::claims
