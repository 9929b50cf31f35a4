// SPDX-License-Identifier: Apache-2.0
#include "share/gang.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>

namespace gflow::share {

std::string turn_name(std::size_t device) {
  std::array<char, 32> name{};
  (void)std::snprintf(name.data(), name.size(), kTurnOfFormat, device);
  return name.data();
}

std::string encode_gang() {
  const auto gang = std::make_unique<Gang>();
  gang->magic = kGangMagic;
  gang->size = sizeof(Gang);
  std::string bytes(sizeof(Gang), '\0');
  std::memcpy(bytes.data(), static_cast<const void*>(gang.get()), bytes.size());
  return bytes;
}

}  // namespace gflow::share
