// SPDX-License-Identifier: Apache-2.0
#include "interpose/session.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
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

#include "interpose/holdings.h"
#include "interpose/real.h"

namespace gflow::interpose {
namespace {

/// The program's own output is its own: one line on stderr, once, for what is not as promised.
void say(std::initializer_list<std::string_view> parts) {
  std::array<char, 512> line{};
  std::size_t length = 0;
  for (const std::string_view part : parts) {
    length += part.copy(line.data() + length, line.size() - 1 - length);
  }
  line[length] = '\n';
  (void)!::write(STDERR_FILENO, line.data(), length + 1);
}

share::Account* refuse(const char* path, const char* why) {
  say({"gflow: the GPU memory of this process is not limited: ", path, ": ", why});
  return nullptr;
}

void after_fork() {
  Session::get().forget_parent();
  forget_holdings();
}

}  // namespace

Session& Session::get() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static Session* const session = new Session(open());
  return *session;
}

share::Account* Session::open() {
  const char* const directory = ::getenv("GFLOW_SHARE_DIR");  // NOLINT(concurrency-mt-unsafe)
  if (directory == nullptr || *directory == '\0') return nullptr;
  std::array<char, 4096> path{};
  const int length = std::snprintf(path.data(), path.size(), "%s/account", directory);
  if (length < 0 || static_cast<std::size_t>(length) >= path.size()) {
    return refuse(directory, std::strerror(ENAMETOOLONG));  // NOLINT(concurrency-mt-unsafe)
  }
  const int file = ::open(path.data(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  // NOLINTNEXTLINE(concurrency-mt-unsafe): once, and the words of a known number
  if (file < 0) return refuse(path.data(), std::strerror(errno));
  const bool is_whole = ::lseek(file, 0, SEEK_END) == sizeof(share::Account);
  void* const mapped =
      is_whole
          ? ::mmap(nullptr, sizeof(share::Account), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
          : MAP_FAILED;
  (void)::close(file);
  if (mapped == MAP_FAILED)
    return refuse(path.data(), "it cannot be mapped, or is of another size");
  auto* const account = static_cast<share::Account*>(mapped);
  if (!share::AccountBook::is_account(*account, sizeof(share::Account))) {
    return refuse(path.data(), "it is of another version of gflow");
  }
  (void)::pthread_atfork(nullptr, nullptr, after_fork);
  return account;
}

std::optional<std::size_t> Session::device(cuda::abi::Device ordinal) {
  if (account_ == nullptr || ordinal < 0) return std::nullopt;
  const auto at = static_cast<std::size_t>(ordinal);
  std::uint8_t known = at < kOrdinals ? known_[at].load(std::memory_order_relaxed) : kUnknown;
  if (known == kUnknown) {
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
  if (account_ == nullptr) return std::nullopt;
  return book().find_device(uuid);
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
    sweep();
    given = book().enter(own);
  }
  if (!given) return std::nullopt;
  slot_.store(*given, std::memory_order_relaxed);
  slot_of_.store(pid, std::memory_order_release);
  return given;
}

bool Session::try_reserve(std::size_t device, std::uint64_t bytes) {
  const auto own = slot();
  return own && book().reserve(*own, device, bytes);
}

void Session::refund(std::size_t device, std::uint64_t bytes) {
  if (const auto own = slot()) book().refund(*own, device, bytes);
}

void Session::count_refusal(std::size_t device) { book().count_refusal(device); }

void Session::sweep() {
  const std::uint32_t space = share::this_process().pid_namespace;
  book().sweep([&](const share::ProcessId& process) { return share::has_ended(process, space); });
}

Session::Amounts Session::amounts(std::size_t device) const {
  const share::DeviceAccount& its = book().device(device);
  return {its.limit, its.used.load(std::memory_order_relaxed)};
}

void Session::note_unrouted(const char* name) {
  if (said_unrouted_.exchange(true)) return;
  say({"gflow: the GPU memory of this process is not limited in full: ",
       name,
       " is not the driver's own, or of a second copy of it"});
}

void Session::forget_parent() {
  slot_of_.store(0, std::memory_order_relaxed);
  // The parent may have held it when it forked; here is one thread.
  new (&entering_) std::mutex;
}

}  // namespace gflow::interpose
