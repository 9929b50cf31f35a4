// SPDX-License-Identifier: Apache-2.0
#include "slurm/under_way.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <thread>
#include <utility>

#include "base/translate.h"
#include "base/word_hash.h"
#include "os/file.h"
#include "os/paths.h"

namespace gflow::slurm {
namespace {

constexpr std::uint64_t kPlaces = 1 << 20;  // the size of the file, which has holes
constexpr std::chrono::milliseconds kBetweenTries{50};

off_t place_of(const std::string& key) {
  WordHash hash;
  std::string text = key;
  text.resize((text.size() / WordHash::kBlock + 1) * WordHash::kBlock);
  hash.add(text.data(), text.size());
  return static_cast<off_t>(hash.value() % kPlaces);
}

Result<os::Fd> open_places() {
  const std::string directory = os::user_paths().run_dir;
  GF_CHECK(os::make_own_directory(directory));
  return os::open_file(directory + "/slurm-submissions", O_RDWR | O_CREAT | O_CLOEXEC);
}

/// Of the open file, so that a process that inherits it has it, too.
Result<void> wait_for_place(const os::Fd& file, off_t place, std::chrono::milliseconds most) {
  const auto end = std::chrono::steady_clock::now() + most;
  struct flock wanted{};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = place;
  wanted.l_len = 1;
  while (::fcntl(file.get(), F_OFD_SETLK, &wanted) != 0) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) return os::errno_error("lock");
    if (std::chrono::steady_clock::now() >= end) {
      return fail(Code::Timeout,
                  tr("the sbatch of an earlier try of this submission goes on: 'gqueue' shows "
                     "whether its job is there"));
    }
    std::this_thread::sleep_for(kBetweenTries);
  }
  return {};
}

Result<void> write_at(const os::Fd& file, off_t place, char byte) {
  if (::pwrite(file.get(), &byte, 1, place) != 1) return os::errno_error("write");
  return {};
}

}  // namespace

Result<UnderWay> UnderWay::begin(const std::string& key, std::chrono::milliseconds most) {
  os::Fd file = GF_TRY(open_places());
  const off_t place = place_of(key);
  GF_CHECK(wait_for_place(file, place, most));
  char byte = 0;
  if (::pread(file.get(), &byte, 1, place) < 0) return os::errno_error("read");
  GF_CHECK(write_at(file, place, 1));
  return UnderWay(std::move(file), place, byte != 0);
}

Result<void> UnderWay::is_heard_of() { return write_at(file_, place_, 0); }

}  // namespace gflow::slurm
