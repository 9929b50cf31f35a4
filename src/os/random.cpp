// SPDX-License-Identifier: Apache-2.0
#include "os/random.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <iterator>
#include <vector>

namespace gflow::os {

std::string random_hex(std::size_t bytes) {
  std::vector<unsigned char> buffer(bytes);
  std::size_t filled = 0;
  while (filled < bytes) {
    // Fails only for a signal: the kernel's generator is always there (getrandom(2)).
    const ssize_t got = ::getrandom(buffer.data() + filled, bytes - filled, 0);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : buffer) {
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

}  // namespace gflow::os
