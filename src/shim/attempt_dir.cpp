// SPDX-License-Identifier: Apache-2.0
#include "shim/attempt_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "attempt/claim.h"
#include "base/proc_text.h"

namespace gflow::shim {

Outcome<AttemptDir> AttemptDir::open(const std::string& path) {
  Fd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return errno_trouble("open " + path);
  Fd lock(::openat(dir.get(), "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock.valid()) return errno_trouble("open lock");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return errno_trouble("take the lock");
  return AttemptDir(std::move(dir), std::move(lock));
}

Outcome<attempt::Order> AttemptDir::read_order() const {
  const Fd fd(::openat(dir_.get(), "order", O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd.valid()) return errno_trouble("open the launch order");
  const auto text = read_whole(fd.get());
  if (!text) return errno_trouble("read the launch order");
  auto order = attempt::decode_order(*text);
  if (!order) return std::unexpected(Trouble{order.error()});
  return std::move(*order);
}

Outcome<void> AttemptDir::allocate_record() {
  record_ = Fd(::openat(dir_.get(), "exit", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!record_.valid()) return errno_trouble("create the exit record");
  // Falls back to writing zeros where the file system cannot allocate (posix_fallocate(3)).
  errno = ::posix_fallocate(record_.get(), 0, attempt::kExitFileSize + attempt::kStartedSize);
  if (errno != 0) return errno_trouble("allocate the exit record");
  return {};
}

Outcome<ClaimResult> AttemptDir::claim(const std::string& boot_id) const {
  attempt::ShimClaim mine{attempt::kClaimProtocol, ::getpid(), 0, boot_id};
  // Without its start time nobody could tell this process from another of its pid.
  const auto stat = read_path("/proc/self/stat");
  const auto facts = parse_proc_stat(stat.value_or(""));
  if (!facts) return errno_trouble("read /proc/self/stat");
  mine.start_time = facts->start_time;
  const std::string text = attempt::encode_claim(mine);
  const ssize_t put = ::pwrite(lock_.get(), text.data(), text.size(), 0);
  const auto size = static_cast<off_t>(text.size());
  if (put != size) return errno_trouble("write the claim");
  // What a shim left that died before this point may have been longer.
  if (::ftruncate(lock_.get(), size) != 0) return errno_trouble("write the claim");
  // link(2) either makes the name with its content or finds it taken: there is no between.
  const int linked = ::linkat(dir_.get(), "lock", dir_.get(), "claim", 0);
  const int number = errno;
  if (linked == 0) return ClaimResult::Mine;
  if (number == EEXIST) return ClaimResult::Revoked;
  errno = number;
  return errno_trouble("claim the attempt");
}

Outcome<void> AttemptDir::store(const attempt::ExitRecord& record) {
  const std::uint32_t sequence = sequence_ + 1;
  const attempt::SlotBytes slot = attempt::encode_slot(record, sequence);
  const auto offset = static_cast<off_t>(attempt::slot_offset(sequence));
  const ssize_t put = ::pwrite(record_.get(), slot.data(), slot.size(), offset);
  if (put < 0) return errno_trouble("write the exit record");
  if (put != static_cast<ssize_t>(slot.size()))
    return std::unexpected(Trouble{"the exit record is cut short"});
  if (::fdatasync(record_.get()) != 0) return errno_trouble("sync the exit record");
  // The name of the file must survive a power failure as well as its content.
  if (::fsync(dir_.get()) != 0) return errno_trouble("sync the directory of the attempt");
  sequence_ = sequence;
  return {};
}

}  // namespace gflow::shim
