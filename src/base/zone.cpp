// SPDX-License-Identifier: Apache-2.0
#include "base/zone.h"

#include <algorithm>

namespace gflow {

WallTime Zone::instant(WallTime local) const {
  // No place is a day from UTC, so these are offsets before and after any change near it.
  constexpr std::chrono::hours kDay{24};
  const WallTime with_old = local - offset(local - kDay);
  const WallTime with_new = local - offset(local + kDay);
  const bool old_holds = local - offset(with_old) == with_old;
  const bool new_holds = local - offset(with_new) == with_new;
  if (old_holds && new_holds) return std::min(with_old, with_new);
  return new_holds ? with_new : with_old;
}

}  // namespace gflow
