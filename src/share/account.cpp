// SPDX-License-Identifier: Apache-2.0
#include "share/account.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gflow::share {
namespace {

/// Time at full use that so long a use is of a share. The share is not 0.
std::uint64_t cost_of(std::uint64_t length, std::uint64_t share) {
  return length / share * kWholeShare + length % share * kWholeShare / share;
}

bool is_part(std::uint64_t share) { return share > 0 && share < kWholeShare; }

/// `change` may be asked several times, as processes do this at once.
template <typename Change>
std::uint64_t update(Amount& amount, Change change) {
  std::uint64_t before = amount.load(std::memory_order_relaxed);
  std::uint64_t after = change(before);
  while (!amount.compare_exchange_weak(before, after, std::memory_order_relaxed)) {
    after = change(before);
  }
  return after;
}

}  // namespace

/// The lock of an account. A process that died with it may have left the sums wrong, not the slots:
/// whoever gets the lock next counts again.
class AccountBook::Lock {
 public:
  explicit Lock(AccountBook& book) : book_(book) {
    const int code = ::pthread_mutex_lock(&book_.account_.lock);
    if (code == EOWNERDEAD) {
      book_.count_again();
      (void)::pthread_mutex_consistent(&book_.account_.lock);
    }
    holds_ = code == 0 || code == EOWNERDEAD;
  }
  ~Lock() {
    if (holds_) (void)::pthread_mutex_unlock(&book_.account_.lock);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;
  [[nodiscard]] bool holds() const { return holds_; }

 private:
  AccountBook& book_;
  bool holds_ = false;
};

bool AccountBook::is_account(const Account& account, std::uint64_t file_size) {
  return file_size == sizeof(Account) && account.magic == kAccountMagic &&
         (account.version == kAccountVersion || account.version == kOlderAccountVersion) &&
         account.size == sizeof(Account) && account.device_count <= kMaxDevices;
}

std::optional<std::size_t> AccountBook::find_device(std::string_view uuid) const {
  for (std::size_t index = 0; index < account_.device_count; ++index) {
    const char* const its = account_.devices[index].uuid;
    if (uuid == std::string_view(its, ::strnlen(its, kUuidSize))) return index;
  }
  return std::nullopt;
}

std::optional<std::size_t> AccountBook::enter(const ProcessId& process) {
  const Lock lock(*this);
  if (!lock.holds()) return std::nullopt;
  // The program it was before execve(2) had that; what it had of a GPU went with it.
  for (std::size_t index = 0; index < kMaxProcesses && process.is_known(); ++index) {
    if (process_in(index) == process) empty(account_.processes[index]);
  }
  for (std::size_t index = 0; index < kMaxProcesses; ++index) {
    ProcessSlot& slot = account_.processes[index];
    if (slot.pid.load(std::memory_order_relaxed) != 0) continue;
    // One who died here before it had taken the slot may have left anything but the pid.
    for (Amount& charged : slot.charged) charged.store(0, std::memory_order_relaxed);
    slot.pid_namespace = process.pid_namespace;
    slot.start_time = process.start_time;
    slot.pid.store(process.pid, std::memory_order_release);
    return index;
  }
  return std::nullopt;
}

void AccountBook::leave(std::size_t slot) {
  const Lock lock(*this);
  if (lock.holds()) empty(account_.processes[slot]);
}

bool AccountBook::reserve(std::size_t slot, std::size_t device, std::uint64_t bytes) {
  const Lock lock(*this);
  if (!lock.holds()) return false;
  DeviceAccount& all = account_.devices[device];
  const std::uint64_t used = all.used.load(std::memory_order_relaxed);
  if (used > all.limit || bytes > all.limit - used) return false;
  account_.processes[slot].charged[device].fetch_add(bytes, std::memory_order_relaxed);
  all.used.store(used + bytes, std::memory_order_relaxed);
  if (used + bytes > all.peak.load(std::memory_order_relaxed)) {
    all.peak.store(used + bytes, std::memory_order_relaxed);
  }
  return true;
}

void AccountBook::refund(std::size_t slot, std::size_t device, std::uint64_t bytes) {
  const Lock lock(*this);
  if (!lock.holds()) return;
  Amount& charged = account_.processes[slot].charged[device];
  const std::uint64_t its = std::min(bytes, charged.load(std::memory_order_relaxed));
  charged.fetch_sub(its, std::memory_order_relaxed);
  account_.devices[device].used.fetch_sub(its, std::memory_order_relaxed);
}

void AccountBook::count_use(std::size_t device, std::uint64_t from, std::uint64_t length) {
  DeviceAccount& its = account_.devices[device];
  its.busy.fetch_add(length, std::memory_order_relaxed);
  if (!is_part(its.share)) return;
  const std::uint64_t step = cost_of(length, its.share);
  its.step.store(step, std::memory_order_relaxed);
  its.progress.fetch_add(step, std::memory_order_relaxed);
  const std::uint64_t most = its.share_limit.load(std::memory_order_relaxed);
  if (!is_part(most)) return;
  const std::uint64_t earned = from - std::min(from, kShareCredit);
  update(its.due, [&](std::uint64_t due) {
    // Who uses it for the first time has not waited for it.
    return (due == 0 ? from : std::max(due, earned)) + cost_of(length, most);
  });
}

std::uint64_t AccountBook::line_up(std::size_t device, std::uint64_t first, std::uint64_t away) {
  DeviceAccount& its = account_.devices[device];
  const std::uint64_t least = first - std::min(first, kShareCredit);
  // Who was served when it was its turn is no further ahead than by what it got then.
  const std::uint64_t most = first + its.step.load(std::memory_order_relaxed) + kShareCredit;
  const std::uint64_t lost =
      away < kLongAway && is_part(its.share) ? cost_of(away, its.share) : ~std::uint64_t{0};
  return update(its.progress, [&](std::uint64_t progress) {
    if (progress > most) return most;
    return progress < least ? progress + std::min(least - progress, lost) : progress;
  });
}

std::uint64_t AccountBook::progress(std::size_t device, std::uint64_t more) const {
  const DeviceAccount& its = account_.devices[device];
  const std::uint64_t now = its.progress.load(std::memory_order_relaxed);
  return is_part(its.share) ? now + cost_of(more, its.share) : now;
}

ProcessId AccountBook::process_in(std::size_t slot) const {
  const ProcessSlot& its = account_.processes[slot];
  const std::uint32_t pid = its.pid.load(std::memory_order_acquire);
  return {pid, its.pid_namespace, its.start_time};
}

void AccountBook::remove(std::size_t slot, const ProcessId& process) {
  const Lock lock(*this);
  // Somebody else may have given it back meanwhile, and a third taken it.
  if (lock.holds() && process_in(slot) == process) empty(account_.processes[slot]);
}

void AccountBook::empty(ProcessSlot& slot) {
  for (std::size_t device = 0; device < kMaxDevices; ++device) {
    const std::uint64_t its = slot.charged[device].exchange(0, std::memory_order_relaxed);
    account_.devices[device].used.fetch_sub(its, std::memory_order_relaxed);
  }
  slot.pid.store(0, std::memory_order_release);
}

void AccountBook::count_again() {
  for (std::size_t device = 0; device < kMaxDevices; ++device) {
    std::uint64_t sum = 0;
    for (const ProcessSlot& slot : account_.processes) {
      if (slot.pid.load(std::memory_order_relaxed) == 0) continue;
      sum += slot.charged[device].load(std::memory_order_relaxed);
    }
    account_.devices[device].used.store(sum, std::memory_order_relaxed);
  }
}

}  // namespace gflow::share
