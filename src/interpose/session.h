// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string_view>

#include "cuda/abi.h"
#include "share/account.h"

namespace gflow::interpose {

/// The program's own output is its own: one line on stderr, for what is not as promised.
void say(std::initializer_list<std::string_view> parts);

/// What this process is limited to: the account in $GFLOW_SHARE_DIR, mapped once. Any thread. Where
/// the job has whole GPUs that limits nothing, and the process watches for whether they are lent.
class Session {
 public:
  static Session& get();

  /// False where there is no account, or it cannot be used (any more), which was said then. Nothing
  /// is limited then: reservations are granted, and what is given back is not counted.
  [[nodiscard]] bool limits() const;

  /// Whether the job has whole GPUs: nothing is limited, and calls of the driver tell.
  [[nodiscard]] bool watches() const { return watched_ != nullptr; }
  /// Takes the slot by which it is known that this process tells, once, and has the stubs look at
  /// its account, or at none.
  void watch();
  /// What every call of the driver does while the GPU is lent: it tells, and waits until the GPU is
  /// the job's own again. Not where the account was removed or cut short.
  void await_own();

  /// The device of the account that the driver counts as `ordinal`; empty if it is not limited.
  [[nodiscard]] std::optional<std::size_t> device(cuda::abi::Device ordinal);
  /// That of the calling thread's context.
  [[nodiscard]] std::optional<std::size_t> current_device();
  /// That of a UUID as NVML writes it.
  [[nodiscard]] std::optional<std::size_t> device(const char* uuid) const;

  /// False if the processes of the account would have more than the limit.
  [[nodiscard]] bool try_reserve(std::size_t device, std::uint64_t bytes);
  void refund(std::size_t device, std::uint64_t bytes);
  void count_refusal(std::size_t device);
  /// Gives back what processes had that have ended.
  void sweep();

  /// Whether the job has no more than a part of the device's time.
  [[nodiscard]] bool has_share(std::size_t device) const;
  /// In 10,000ths.
  [[nodiscard]] std::uint64_t share(std::size_t device) const;
  [[nodiscard]] const char* uuid(std::size_t device) const {
    return account_->devices[device].uuid;
  }
  /// When it may be used again, nanoseconds of CLOCK_MONOTONIC.
  [[nodiscard]] std::uint64_t due(std::size_t device) const;
  void count_use(std::size_t device, std::uint64_t from, std::uint64_t length);
  /// How much of its share the job has used, in nanoseconds, if it used so much more now.
  [[nodiscard]] std::uint64_t progress(std::size_t device, std::uint64_t more) const;
  /// As AccountBook has it.
  std::uint64_t line_up(std::size_t device, std::uint64_t first, std::uint64_t away);
  /// The directory of the lock that keeps others off the device meanwhile; null if the job has
  /// parts of several devices.
  [[nodiscard]] const char* turn_directory() const { return is_single_ ? directory_ : nullptr; }
  /// That of the locks of all of them; null if it has one, or is of a gflow that used several
  /// without.
  [[nodiscard]] const char* gang_directory() const { return is_gang_ ? directory_ : nullptr; }

  struct Amounts {
    std::uint64_t limit;
    std::uint64_t used;
  };
  [[nodiscard]] Amounts amounts(std::size_t device) const;

  /// Says, once, that a function was found where it is not limited.
  void note_unrouted(const char* name);
  /// In the child of a fork: nothing of the parent's is its own.
  void forget_parent();

 private:
  Session();
  [[nodiscard]] share::Account* open();
  /// What is told of processes that this one cannot judge; null where nobody does.
  [[nodiscard]] static const share::EndedProcesses* open_ended(const char* directory);
  /// Whether the file is still as long as it was. It is its owner's, who may cut it short: a look
  /// at it ends the process then.
  [[nodiscard]] bool is_whole() const;
  /// Whether gflowd still finds the account where it made it.
  [[nodiscard]] bool is_there() const;
  /// Whether this process is one whose lock the kernel takes when it dies.
  [[nodiscard]] bool can_take_locks() const;
  /// Says why, once, and limits nothing from then on.
  void give_up(const char* why) const;
  [[nodiscard]] share::AccountBook book() const { return share::AccountBook(*mapped_); }
  /// Of processes that have ended, without asking whether the account is whole.
  void sweep_book() const;
  [[nodiscard]] std::optional<std::size_t> slot();
  /// As it is kept in known_.
  [[nodiscard]] std::uint8_t find(cuda::abi::Device ordinal) const;

  static constexpr std::size_t kOrdinals = 64;
  static constexpr std::uint8_t kUnknown = 0;
  static constexpr std::uint8_t kUnlimited = 1;
  static constexpr std::uint8_t kFirst = 2;

  const char* directory_ = nullptr;
  bool is_single_ = false;  ///< it has one device
  bool is_gang_ = false;    ///< it has parts of several, and turns on all of them at once
  std::array<char, 4096> path_{};
  std::array<char, 4096> wanted_path_{};
  std::uint64_t inode_ = 0;  ///< of the account; 0: not known
  const share::EndedProcesses* ended_ = nullptr;
  share::Account* mapped_ = nullptr;
  share::Account* account_ = nullptr;  ///< that, if it limits
  share::Account* watched_ = nullptr;  ///< that, if it does not
  std::array<bool, share::kMaxDevices> shares_{};
  mutable std::atomic<bool> has_given_up_ = false;
  mutable std::atomic<std::uint32_t> takes_locks_ = 0;  ///< the pid of which it is known
  std::array<std::atomic<std::uint8_t>, kOrdinals> known_{};
  std::mutex entering_;
  std::atomic<std::uint32_t> slot_of_ = 0;  ///< the pid whose slot it is; 0: there is none
  std::atomic<std::size_t> slot_ = 0;
  std::atomic<bool> said_unrouted_ = false;
};

}  // namespace gflow::interpose
