// SPDX-License-Identifier: Apache-2.0
#include "store/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "os/file.h"

namespace gflow::store {
namespace {

constexpr std::size_t kChunk = 1U << 20;
constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;

/// Four chains beside each other, which a processor computes at once. Each step can be undone, so
/// that what differs in one word differs for good.
class WordHash {
 public:
  /// `size` is a multiple of 32.
  void add(const char* data, std::size_t size) {
    for (std::size_t at = 0; at < size; at += sizeof(lanes_)) {
      std::array<std::uint64_t, 4> words{};
      std::memcpy(words.data(), data + at, sizeof(words));
      for (std::size_t i = 0; i < words.size(); ++i) {
        lanes_[i] = std::rotl((lanes_[i] ^ words[i]) * kOdd, 29);
      }
    }
  }
  [[nodiscard]] std::uint64_t value() const {
    std::uint64_t all = 0;
    for (const std::uint64_t lane : lanes_) all = std::rotl((all ^ lane) * kOdd, 29);
    return all;
  }

 private:
  std::array<std::uint64_t, 4> lanes_{1, 2, 3, 4};
};

}  // namespace

Result<std::string> digest_of(const std::string& path) {
  const os::Fd fd = GF_TRY(os::open_file(path, O_RDONLY));
  std::vector<char> chunk(kChunk);
  WordHash hash;
  std::uint64_t size = 0;
  std::size_t filled = 0;
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data() + filled, kChunk - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os::errno_error("read", path);
    filled += static_cast<std::size_t>(got);
    size += static_cast<std::uint64_t>(got);
    if (got != 0 && filled < kChunk) continue;
    // Only the last chunk is not full; its rest is zeros, and the size tells them from content.
    std::memset(chunk.data() + filled, 0, kChunk - filled);
    hash.add(chunk.data(), (filled + 31) / 32 * 32);
    filled = 0;
    if (got == 0) return fmt::format("{:x}-{:016x}", size, hash.value());
  }
}

}  // namespace gflow::store
