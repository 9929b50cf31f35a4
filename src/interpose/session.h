// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

#include "cuda/abi.h"
#include "share/account.h"

namespace gflow::interpose {

/// What this process is limited to: the account in $GFLOW_SHARE_DIR, mapped once. Any thread.
class Session {
 public:
  static Session& get();

  /// False where there is no account, or it cannot be used, which was said then.
  [[nodiscard]] bool limits() const { return account_ != nullptr; }

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
  explicit Session(share::Account* account) : account_(account) {}
  static share::Account* open();
  [[nodiscard]] share::AccountBook book() const { return share::AccountBook(*account_); }
  [[nodiscard]] std::optional<std::size_t> slot();
  /// As it is kept in known_.
  [[nodiscard]] std::uint8_t find(cuda::abi::Device ordinal) const;

  static constexpr std::size_t kOrdinals = 64;
  static constexpr std::uint8_t kUnknown = 0;
  static constexpr std::uint8_t kUnlimited = 1;
  static constexpr std::uint8_t kFirst = 2;

  share::Account* account_;
  std::array<std::atomic<std::uint8_t>, kOrdinals> known_{};
  std::mutex entering_;
  std::atomic<std::uint32_t> slot_of_ = 0;  ///< the pid whose slot it is; 0: there is none
  std::atomic<std::size_t> slot_ = 0;
  std::atomic<bool> said_unrouted_ = false;
};

}  // namespace gflow::interpose
