// SPDX-License-Identifier: Apache-2.0
#include "interpose/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <new>
#include <string_view>

#include "interpose/gate.h"
#include "interpose/holdings.h"
#include "interpose/real.h"
#include "interpose/stubs.h"
#include "interpose/wanted.h"
#include "share/account_file.h"
#include "share/gang.h"

namespace gflow::interpose {
namespace {

void say_unlimited(const char* path, const char* why) {
  say({"gflow: this process is not held to its part of the GPU: ", path, ": ", why});
}

/// In a container whatever the environment is.
const char* account_directory() {
  if (::access(share::kContainerDirectory, F_OK) == 0) return share::kContainerDirectory;
  const char* const told = ::getenv("GFLOW_SHARE_DIR");  // NOLINT(concurrency-mt-unsafe)
  return told == nullptr || *told == '\0' ? nullptr : told;
}

bool has_gang_file(const char* directory) {
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/%s", directory, share::kGangName);
  return length > 0 && static_cast<std::size_t>(length) < path.size() &&
         ::access(path.data(), F_OK) == 0;
}

void after_fork() {
  Session::get().forget_parent();
  forget_holdings();
  forget_gates();
}

}  // namespace

void say(std::initializer_list<std::string_view> parts) {
  std::array<char, 512> line{};
  std::size_t length = 0;
  for (const std::string_view part : parts) {
    length += part.copy(line.data() + length, line.size() - 1 - length);
  }
  line[length] = '\n';
  (void)!::write(STDERR_FILENO, line.data(), length + 1);
}

namespace {

struct Inode {
  std::uint64_t number = 0;  ///< 0: not known
  int error = 0;
};

/// By the system call: the C library has the functions under versions that old ones do not.
Inode inode_of(int directory, const char* path, int flags) {
  struct statx facts{};
  if (::syscall(SYS_statx, directory, path, flags, STATX_INO, &facts) != 0) return {.error = errno};
  return {.number = facts.stx_ino};
}

}  // namespace

Session& Session::get() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static auto* const session = new Session;
  return *session;
}

Session::Session() : mapped_(open()) {
  if (mapped_ == nullptr) return;
  (share::AccountBook::is_of_whole_gpus(*mapped_) ? watched_ : account_) = mapped_;
  (void)::pthread_atfork(nullptr, nullptr, after_fork);
  if (account_ == nullptr) return;
  is_single_ = account_->device_count == 1;
  is_gang_ = !is_single_ && has_gang_file(directory_);
  for (std::size_t device = 0; device < account_->device_count; ++device) {
    const std::uint64_t share = account_->devices[device].share;
    shares_[device] = share > 0 && share < share::kWholeShare;
  }
}

share::Account* Session::open() {
  const auto refuse = [this](const char* why) {
    say_unlimited(path_.data(), why);
    return nullptr;
  };
  const char* const directory = account_directory();
  if (directory == nullptr) return nullptr;
  directory_ = ::strdup(directory);
  const int length =
      std::snprintf(path_.data(), path_.size(), "%s/%s", directory, share::kAccountName);
  // NOLINTBEGIN(concurrency-mt-unsafe): once, and the words of a known number
  if (length < 0 || static_cast<std::size_t>(length) >= path_.size()) {
    return refuse(std::strerror(ENAMETOOLONG));
  }
  (void)std::snprintf(
      wanted_path_.data(), wanted_path_.size(), "%s/%s", directory, share::kWantedName);
  ended_ = open_ended(directory);
  const int file = ::open(path_.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return refuse(std::strerror(errno));
  // NOLINTEND(concurrency-mt-unsafe)
  const bool is_whole = ::lseek(file, 0, SEEK_END) == sizeof(share::Account);
  inode_ = inode_of(file, "", AT_EMPTY_PATH).number;
  void* const mapped =
      is_whole
          ? ::mmap(nullptr, sizeof(share::Account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
          : MAP_FAILED;
  (void)::close(file);
  if (mapped == MAP_FAILED) return refuse("it cannot be mapped, or is of another size");
  auto* const account = static_cast<share::Account*>(mapped);
  if (!share::AccountBook::is_account(*account, sizeof(share::Account))) {
    return refuse("it is of another version of gflow");
  }
  return account;
}

const share::EndedProcesses* Session::open_ended(const char* directory) {
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/%s", directory, share::kEndedName);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) return nullptr;
  const int file = ::open(path.data(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return nullptr;
  constexpr std::size_t kSize = sizeof(share::EndedProcesses);
  const bool is_whole = ::lseek(file, 0, SEEK_END) == kSize;
  void* const mapped =
      is_whole ? ::mmap(nullptr, kSize, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  (void)::close(file);
  return mapped == MAP_FAILED ? nullptr : static_cast<const share::EndedProcesses*>(mapped);
}

bool Session::limits() const {
  if (account_ == nullptr || has_given_up_.load(std::memory_order_relaxed)) return false;
  if (!can_take_locks()) {
    give_up("this is a child of clone(2), which could not give its lock back");
  } else if (!is_whole()) {
    give_up("it was cut short");
  } else {
    return true;
  }
  return false;
}

/// One that cannot take the lock has no slot, as everybody sees, and tells all the same.
void Session::watch() {
  if (watched_ == nullptr) return watch_word(nullptr);
  const auto pid = static_cast<std::uint32_t>(::getpid());
  if (slot_of_.load(std::memory_order_acquire) == pid) return;
  if (!is_whole()) return watch_word(nullptr);
  if (can_take_locks()) (void)slot();
  watch_word(&watched_->lent);
}

void Session::await_own() {
  if (watched_ == nullptr) return;
  constexpr long kFirstPause = 50'000;  // nanoseconds
  constexpr long kLongestPause = 20'000'000;
  timespec pause{.tv_sec = 0, .tv_nsec = kFirstPause};
  while (is_whole() && watched_->lent.load() != share::kNotLent) {
    tell_wanted(watched_->lent, wanted_path_.data());
    if (!is_there()) return;
    (void)::syscall(SYS_nanosleep, &pause, nullptr);
    pause.tv_nsec = std::min(2 * pause.tv_nsec, kLongestPause);
  }
}

bool Session::is_there() const {
  const Inode now = inode_of(AT_FDCWD, path_.data(), AT_SYMLINK_NOFOLLOW);
  return now.error != ENOENT && (now.number == inode_ || now.number == 0 || inode_ == 0);
}

/// The kernel is asked for a page that is there as long as those before it, and does with it what
/// changes nothing: to wake those who wait for its last word.
bool Session::is_whole() const {
  const auto* const end = reinterpret_cast<const std::uint32_t*>(mapped_ + 1);
  constexpr int kWake = 1;  // FUTEX_WAKE
  return ::syscall(SYS_futex, end - 1, kWake, 0, nullptr, nullptr, 0) >= 0 || errno != EFAULT;
}

/// A process that fork(2) or the loader did not make has not told the kernel where its locks are.
bool Session::can_take_locks() const {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  if (takes_locks_.load(std::memory_order_relaxed) == pid) return true;
  const void* locks = nullptr;
  std::size_t size = 0;
  if (::syscall(SYS_get_robust_list, 0, &locks, &size) == 0 && locks == nullptr) return false;
  takes_locks_.store(pid, std::memory_order_relaxed);
  return true;
}

void Session::give_up(const char* why) const {
  if (!has_given_up_.exchange(true)) say_unlimited(path_.data(), why);
}

std::optional<std::size_t> Session::device(cuda::abi::Device ordinal) {
  if (account_ == nullptr || ordinal < 0) return std::nullopt;
  const auto at = static_cast<std::size_t>(ordinal);
  std::uint8_t known = at < kOrdinals ? known_[at].load(std::memory_order_relaxed) : kUnknown;
  if (known == kUnknown) {
    if (!limits()) return std::nullopt;
    known = find(ordinal);
    if (at < kOrdinals) known_[at].store(known, std::memory_order_relaxed);
  }
  if (known < kFirst) return std::nullopt;
  return static_cast<std::size_t>(known - kFirst);
}

/// Unknown while the driver does not answer, as before it is initialized.
std::uint8_t Session::find(cuda::abi::Device ordinal) const {
  cuda::abi::Uuid uuid{};
  auto* ask = driver().cuDeviceGetUuid_v2;
  if (ask == nullptr) ask = driver().cuDeviceGetUuid;
  if (ask == nullptr || ask(&uuid, ordinal) != cuda::abi::kSuccess) return kUnknown;
  for (const char* prefix : {"GPU", "MIG"}) {
    std::array<char, share::kUuidSize> text{};
    std::size_t at = 0;
    const auto put = [&](char letter) { text[at++] = letter; };
    for (const char* letter = prefix; *letter != '\0'; ++letter) put(*letter);
    for (std::size_t byte = 0; byte < 16; ++byte) {
      if (byte == 0 || byte == 4 || byte == 6 || byte == 8 || byte == 10) put('-');
      constexpr const char* kDigits = "0123456789abcdef";
      put(kDigits[uuid.bytes[byte] >> 4]);
      put(kDigits[uuid.bytes[byte] & 15]);
    }
    if (const auto found = device(text.data())) return static_cast<std::uint8_t>(kFirst + *found);
  }
  return kUnlimited;
}

std::optional<std::size_t> Session::device(const char* uuid) const {
  return limits() ? book().find_device(uuid) : std::nullopt;
}

std::optional<std::size_t> Session::current_device() {
  cuda::abi::Device ordinal = 0;
  if (account_ == nullptr || driver().cuCtxGetDevice == nullptr) return std::nullopt;
  if (driver().cuCtxGetDevice(&ordinal) != cuda::abi::kSuccess) return std::nullopt;
  return device(ordinal);
}

std::optional<std::size_t> Session::slot() {
  const auto pid = static_cast<std::uint32_t>(::getpid());
  if (slot_of_.load(std::memory_order_acquire) == pid) return slot_.load(std::memory_order_relaxed);
  const std::lock_guard lock(entering_);
  if (slot_of_.load(std::memory_order_relaxed) == pid) return slot_.load(std::memory_order_relaxed);
  const share::ProcessId own = share::this_process();
  auto given = book().enter(own);
  if (!given) {
    sweep_book();
    given = book().enter(own);
  }
  if (!given) return std::nullopt;
  slot_.store(*given, std::memory_order_relaxed);
  slot_of_.store(pid, std::memory_order_release);
  return given;
}

bool Session::try_reserve(std::size_t device, std::uint64_t bytes) {
  if (!limits()) return true;
  const auto own = slot();
  return own && book().reserve(*own, device, bytes);
}

void Session::refund(std::size_t device, std::uint64_t bytes) {
  if (!limits()) return;
  if (const auto own = slot()) book().refund(*own, device, bytes);
}

void Session::count_refusal(std::size_t device) {
  if (limits()) book().count_refusal(device);
}

void Session::sweep() {
  if (limits()) sweep_book();
}

void Session::sweep_book() const {
  const std::uint32_t space = share::this_process().pid_namespace;
  const auto is_told = [this](const share::ProcessId& process) {
    const auto is_it = [&](const share::EndedProcess& one) { return one.is(process); };
    return ended_ != nullptr && std::any_of(ended_->begin(), ended_->end(), is_it);
  };
  book().sweep([&](const share::ProcessId& process) {
    return share::has_ended(process, space) || is_told(process);
  });
}

bool Session::has_share(std::size_t device) const {
  if (account_ == nullptr || has_given_up_.load(std::memory_order_relaxed)) return false;
  return device < shares_.size() && shares_[device];
}

std::uint64_t Session::share(std::size_t device) const {
  return limits() ? book().device(device).share : share::kWholeShare;
}

std::uint64_t Session::due(std::size_t device) const {
  if (!limits()) return 0;
  const share::DeviceAccount& its = book().device(device);
  // Who may have what others leave owes nothing any more of when it was limited.
  const bool is_limited = its.share_limit.load(std::memory_order_relaxed) < share::kWholeShare;
  return is_limited ? its.due.load(std::memory_order_relaxed) : 0;
}

void Session::count_use(std::size_t device, std::uint64_t from, std::uint64_t length) {
  if (limits()) book().count_use(device, from, length);
}

std::uint64_t Session::progress(std::size_t device, std::uint64_t more) const {
  return limits() ? book().progress(device, more) : 0;
}

std::uint64_t Session::line_up(std::size_t device, std::uint64_t first, std::uint64_t away) {
  return limits() ? book().line_up(device, first, away) : 0;
}

Session::Amounts Session::amounts(std::size_t device) const {
  if (!limits()) return {~std::uint64_t{0}, 0};
  const share::DeviceAccount& its = book().device(device);
  return {its.limit, its.used.load(std::memory_order_relaxed)};
}

void Session::note_unrouted(const char* name) {
  if (said_unrouted_.exchange(true)) return;
  say({"gflow: this process is not held to its part of the GPU in full: ",
       name,
       " is not the driver's own, or of a second copy of it"});
}

void Session::forget_parent() {
  slot_of_.store(0, std::memory_order_relaxed);
  // The parent may have held it when it forked; here is one thread.
  new (&entering_) std::mutex;
  if (watches()) forget_word();
}

}  // namespace gflow::interpose
