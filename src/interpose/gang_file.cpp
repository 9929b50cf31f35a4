// SPDX-License-Identifier: Apache-2.0
#include "interpose/gang_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

namespace gflow::interpose {
namespace {

constexpr off_t member_byte(std::size_t member) {
  return static_cast<off_t>(share::kMemberBytes + member);
}
constexpr off_t leader_byte(std::size_t place) {
  return static_cast<off_t>(share::kLeaderBytes + place);
}

/// Null if it is not there, or not whole.
share::Gang* map_gang(const char* path) {
  const int file = ::open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  constexpr std::size_t kSize = sizeof(share::Gang);
  const bool is_whole = ::lseek(file, 0, SEEK_END) == kSize;
  void* const mapped =
      is_whole ? ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  (void)::close(file);  // before anything is locked: that would go with it
  if (mapped == MAP_FAILED) return nullptr;
  auto* const gang = static_cast<share::Gang*>(mapped);
  return gang->magic == share::kGangMagic && gang->size == kSize ? gang : nullptr;
}

}  // namespace

GangFile::GangFile(const char* directory) : locks_(directory, share::kGangName) {
  gang_ = map_gang(locks_.path());
}

/// As Session asks whether the account is whole.
bool GangFile::is_there() {
  if (gang_ == nullptr || is_lost_ || !locks_.is_there()) return false;
  const auto* const end = reinterpret_cast<const std::uint32_t*>(gang_ + 1);
  constexpr int kWake = 1;  // FUTEX_WAKE
  if (::syscall(SYS_futex, end - 1, kWake, 0, nullptr, nullptr, 0) >= 0 || errno != EFAULT) {
    return true;
  }
  is_lost_ = true;
  constexpr int kOurs = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  void* const zeros = ::mmap(gang_, sizeof(share::Gang), PROT_READ | PROT_WRITE, kOurs, -1, 0);
  if (zeros == MAP_FAILED) gang_ = nullptr;
  return false;
}

/// What a place says of the one before is forgotten, unless it is this process's own.
bool GangFile::join() {
  if (!locks_.is_there()) return false;
  if (own_ < share::kMaxMembers && joined_in_ == locks_.generation()) return true;
  for (std::size_t member = 0; member < share::kMaxMembers; ++member) {
    if (!locks_.set(member_byte(member), 1, F_WRLCK)) continue;
    if (locks_.why_not() != 0) return false;
    const bool was_own = own_ == member;
    own_ = member;
    joined_in_ = locks_.generation();
    if (was_own) return true;
    share::GangMember& its = own();
    its.busy.store(0);
    its.turn.store(0);
    its.wants.store(0);
    its.steps.store(0);
    its.uses.store(0);
    return true;
  }
  return false;
}

bool GangFile::is_alive(std::size_t member) {
  return member == own_ || locks_.find(member_byte(member), member_byte(member) + 1).has_value();
}

GangFile::Leader GangFile::leader(std::size_t place) {
  const bool is_led = locks_.find(leader_byte(place), leader_byte(place) + 1).has_value();
  const share::GangLead& its = gang_->leads[place];
  return {.is_there = is_led, .turn = its.turn.load(), .looked_at = its.looked_at.load()};
}

bool GangFile::try_lead(std::size_t place) {
  return locks_.set(leader_byte(place), 1, F_WRLCK) && locks_.why_not() == 0;
}

void GangFile::stop_leading(std::size_t place) { (void)locks_.set(leader_byte(place), 1, F_UNLCK); }

}  // namespace gflow::interpose
