// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// What the processes of one attempt have of its GPUs: a file that each of them maps and that all
/// change under one lock. docs/format/account.md has its layout.
namespace gflow::share {

constexpr std::uint64_t kAccountMagic = 0x0a746e75'6f636361;  ///< "account\n"
constexpr std::uint32_t kAccountVersion = 4;
/// What is taken besides: the same layout, in which nothing is lent.
constexpr std::uint32_t kOlderAccountVersion = 3;
constexpr std::size_t kMaxDevices = 16;
constexpr std::size_t kMaxProcesses = 256;
constexpr std::uint64_t kWholeShare = 10'000;
/// What was not used of a share counts for this long, in nanoseconds.
constexpr std::uint64_t kShareCredit = 100'000'000;
/// Who was away for as long, in nanoseconds, comes as one that was never there.
constexpr std::uint64_t kLongAway = 1'000'000'000'000;
/// Where both are in a container, whatever its environment says of GFLOW_SHARE_DIR.
constexpr const char* kContainerDirectory = "/run/gflow-share";
constexpr std::size_t kUuidSize = 48;  ///< with its NUL: "GPU-" or "MIG-" and 36 letters

/// Amounts are atomic so that they may be read without the lock; they change only under it.
using Amount = std::atomic<std::uint64_t>;
static_assert(Amount::is_always_lock_free && sizeof(Amount) == 8);

struct DeviceAccount {
  char uuid[kUuidSize];  ///< as NVML writes it
  std::uint64_t limit;   ///< bytes all processes may have together
  Amount used;           ///< the sum of what the processes are charged
  Amount peak;           ///< the most `used` has been
  Amount refused;        ///< how often a program was told that there is no more
  std::uint64_t share;   ///< of the device's time, in 10,000ths, that is the job's if it wants it
  Amount share_limit;    ///< the most of it, as much or more; kWholeShare: what others leave
  Amount due;            ///< when the device may be used again, nanoseconds of CLOCK_MONOTONIC
  Amount busy;           ///< nanoseconds for which it was used
  Amount progress;       ///< `busy` divided by `share`, brought near to that of others in line
  Amount step;           ///< how far the last use brought it
};

/// Where the GPU of a job is that has a whole one, in Account::lent. gflowd says that it is lent
/// and that it is not; whoever of the job's processes wants it back first makes kLent kWanted.
constexpr std::uint32_t kNotLent = 0;
constexpr std::uint32_t kLent = 1;
constexpr std::uint32_t kWanted = 2;  ///< lent, and a process of the job waits for it

/// Which process a slot is of. A pid alone may be another process's by now.
struct ProcessId {
  std::uint32_t pid = 0;
  std::uint32_t pid_namespace = 0;  ///< inode of the namespace the pid counts in
  std::uint64_t start_time = 0;     ///< of /proc/PID/stat

  /// False without /proc: another process may then look the same.
  [[nodiscard]] bool is_known() const { return pid_namespace != 0 && start_time != 0; }
  friend bool operator==(const ProcessId&, const ProcessId&) = default;
};

struct ProcessSlot {
  std::atomic<std::uint32_t> pid;  ///< 0: nobody's. Set last, so that a slot that is taken is whole
  std::uint32_t pid_namespace;
  std::uint64_t start_time;
  std::array<Amount, kMaxDevices> charged;
};

struct Account {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;               ///< of the whole file
  std::uint32_t device_count;       ///< 0: the job has whole GPUs, and nothing is limited
  std::atomic<std::uint32_t> lent;  ///< changed without the lock; where there are devices kNotLent
  pthread_mutex_t lock;  ///< robust, shared by processes, held for a few additions and no call
  std::array<DeviceAccount, kMaxDevices> devices;
  std::array<ProcessSlot, kMaxProcesses> processes;
};
static_assert(sizeof(DeviceAccount) == 128);
static_assert(sizeof(ProcessSlot) == 144);

/// One of those of whom somebody who sees them says that they have ended; zeros: none. It may be
/// written at any time.
struct EndedProcess {
  std::atomic<std::uint32_t> pid;
  std::atomic<std::uint32_t> pid_namespace;
  std::atomic<std::uint64_t> start_time;

  [[nodiscard]] bool is(const ProcessId& process) const {
    return process.pid != 0 && pid.load() == process.pid &&
           pid_namespace.load() == process.pid_namespace && start_time.load() == process.start_time;
  }
};
static_assert(sizeof(EndedProcess) == 16);
using EndedProcesses = std::array<EndedProcess, kMaxProcesses>;  ///< the file kEndedName

/// What a process does with the account it mapped. Any thread; no call blocks for longer than
/// another process needs for some additions, nor allocates, nor throws.
class AccountBook {
 public:
  explicit AccountBook(Account& account) : account_(account) {}

  /// Whether the bytes of a file can be an account of this version, or of the older one.
  [[nodiscard]] static bool is_account(const Account& account, std::uint64_t file_size);

  /// Whether the account limits nothing: its processes only watch for whether their GPU is lent.
  [[nodiscard]] static bool is_of_whole_gpus(const Account& account) {
    return account.version == kAccountVersion && account.device_count == 0;
  }

  /// Index of a device; empty if the account has no limit for it.
  [[nodiscard]] std::optional<std::size_t> find_device(std::string_view uuid) const;
  [[nodiscard]] const DeviceAccount& device(std::size_t index) const {
    return account_.devices[index];
  }

  /// A slot for the process, once for each program it executes: what it had as another one is given
  /// back. Empty if all are taken by processes that live, or the lock is gone.
  [[nodiscard]] std::optional<std::size_t> enter(const ProcessId& process);
  /// Gives back what the process has, and its slot.
  void leave(std::size_t slot);

  /// Charges the process: true if all processes together then have no more than the limit, else
  /// nothing is changed.
  [[nodiscard]] bool reserve(std::size_t slot, std::size_t device, std::uint64_t bytes);
  /// A program was told that there is no more.
  void count_refusal(std::size_t device) { account_.devices[device].refused.fetch_add(1); }
  /// Takes back at most what the process was charged.
  void refund(std::size_t slot, std::size_t device, std::uint64_t bytes);

  /// All processes together used the device for so long, from a time on: they may use it again when
  /// that much is no more than the limit of their share of the time that has passed, and stand
  /// behind those who used less of theirs. Nanoseconds; no lock is taken.
  void count_use(std::size_t device, std::uint64_t from, std::uint64_t length);
  /// The job comes to the line for the device, where the first of the others has made so much
  /// progress, after so long `away` from it. What it did not use meanwhile is forgotten but for
  /// kShareCredit, not what others had while it stood there; and what it used while nobody else
  /// wanted it. Its progress then.
  std::uint64_t line_up(std::size_t device, std::uint64_t first, std::uint64_t away);
  /// Its progress if it used the device for so much longer.
  [[nodiscard]] std::uint64_t progress(std::size_t device, std::uint64_t more) const;

  /// Gives back what processes had of which `is_dead` says so, asked without the lock.
  template <typename IsDead>
  void sweep(IsDead is_dead) {
    for (std::size_t slot = 0; slot < kMaxProcesses; ++slot) {
      const ProcessId process = process_in(slot);
      if (process.pid != 0 && is_dead(process)) remove(slot, process);
    }
  }
  /// Who has a slot; pid 0: nobody.
  [[nodiscard]] ProcessId process_in(std::size_t slot) const;

 private:
  class Lock;
  void remove(std::size_t slot, const ProcessId& process);
  void empty(ProcessSlot& slot);
  void count_again();

  Account& account_;
};

/// Whether the process has ended, asked of /proc. One in another pid namespace than the asker's is
/// taken to live, as its pid says nothing here.
[[nodiscard]] bool has_ended(const ProcessId& process, std::uint32_t own_namespace);
/// This process; without /proc, its pid alone.
[[nodiscard]] ProcessId this_process();

}  // namespace gflow::share
