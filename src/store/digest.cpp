// SPDX-License-Identifier: Apache-2.0
#include "store/digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/word_hash.h"
#include "os/file.h"

namespace gflow::store {
namespace {

constexpr std::size_t kChunk = 1U << 20;

}  // namespace

Result<std::string> digest_of_file(const std::string& path) {
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
    hash.add(chunk.data(), (filled + WordHash::kBlock - 1) / WordHash::kBlock * WordHash::kBlock);
    filled = 0;
    if (got == 0) return digest_text(size, hash);
  }
}

}  // namespace gflow::store
