// SPDX-License-Identifier: Apache-2.0
#include "share/account_file.h"

#include <cstring>
#include <memory>

#include "share/account.h"

namespace gflow::share {
namespace {

/// Where the job takes it, in a container, the C library may be another glibc: of any version, as
/// programs of one with a lock initialized at compile time run on all that come after.
void make_lock(pthread_mutex_t& lock) {
  pthread_mutexattr_t kind{};
  (void)::pthread_mutexattr_init(&kind);
  (void)::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  (void)::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  (void)::pthread_mutex_init(&lock, &kind);
  (void)::pthread_mutexattr_destroy(&kind);
}

}  // namespace

std::expected<std::string, std::string> encode_account(const std::vector<DeviceLimit>& devices) {
  if (devices.size() > kMaxDevices) {
    return std::unexpected("an account has at most " + std::to_string(kMaxDevices) + " GPUs, not " +
                           std::to_string(devices.size()));
  }
  const auto account = std::make_unique<Account>();
  account->magic = kAccountMagic;
  account->version = kAccountVersion;
  account->size = sizeof(Account);
  account->device_count = static_cast<std::uint32_t>(devices.size());
  make_lock(account->lock);
  for (std::size_t index = 0; index < devices.size(); ++index) {
    const DeviceLimit& given = devices[index];
    if (given.uuid.empty() || given.uuid.size() >= kUuidSize) {
      return std::unexpected("not the UUID of a GPU: \"" + given.uuid + "\"");
    }
    DeviceAccount& device = account->devices[index];
    std::memcpy(device.uuid, given.uuid.c_str(), given.uuid.size() + 1);
    device.limit = given.bytes;
    device.share = given.share;
    device.share_limit.store(given.share_limit, std::memory_order_relaxed);
  }
  std::string bytes(sizeof(Account), '\0');
  std::memcpy(bytes.data(), static_cast<const void*>(account.get()), bytes.size());
  return bytes;
}

std::string encode_ended() { return std::string(sizeof(EndedProcesses), '\0'); }

}  // namespace gflow::share
