// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <variant>

#include "attempt/exit_record.h"

/// Orders to a running shim: a real-time signal with a 32-bit value (SI_QUEUE), sent through its
/// pidfd. The kernel queues them in order and loses none, and there is no socket to be stuck.
namespace gflow::attempt {

// Signal numbers as the kernel counts them, clear of the two glibc keeps (32, 33) and of SIGRTMIN
// itself. Part of the protocol: never renumber.
constexpr int kStopSignal = 40;
constexpr int kLimitSignal = 41;
constexpr int kStandSignal = 42;
constexpr int kSendSignal = 43;
inline constexpr std::array kControlSignals{kStopSignal, kLimitSignal, kStandSignal, kSendSignal};

/// End the job: this signal to all its processes, grace, SIGKILL.
struct StopJob {
  int signal = 15;  ///< 1..64
  Ending reason = Ending::Cancelled;
  friend bool operator==(const StopJob&, const StopJob&) = default;
};
/// The time limit, counted from the start of the attempt without the time it stood still; empty:
/// none.
struct SetLimit {
  std::optional<std::chrono::seconds> limit;
  friend bool operator==(const SetLimit&, const SetLimit&) = default;
};
/// Stop every process of the job where it stands, and its time limit with it. Means nothing once
/// the job is being ended.
struct SuspendJob {
  friend bool operator==(const SuspendJob&, const SuspendJob&) = default;
};
/// Let it go on.
struct ResumeJob {
  friend bool operator==(const ResumeJob&, const ResumeJob&) = default;
};
/// This signal to all its processes, and nothing else; those of a suspended one get it when it goes
/// on.
struct SendSignal {
  int signal = 15;  ///< 1..64
  friend bool operator==(const SendSignal&, const SendSignal&) = default;
};
using Control = std::variant<StopJob, SetLimit, SuspendJob, ResumeJob, SendSignal>;

/// As it travels: which signal, and its value.
struct ControlSignal {
  int number = 0;
  std::int32_t value = 0;
  friend bool operator==(const ControlSignal&, const ControlSignal&) = default;
};

[[nodiscard]] ControlSignal encode_control(const Control& control);
/// Empty if the signal is none of ours or its value makes no sense.
[[nodiscard]] std::optional<Control> decode_control(ControlSignal signal);

}  // namespace gflow::attempt
