// SPDX-License-Identifier: Apache-2.0
#include "attempt/control.h"

#include <algorithm>
#include <limits>

namespace gflow::attempt {
namespace {

// Values of kStandSignal. Part of the protocol: never renumber.
constexpr std::int32_t kGoOn = 0;
constexpr std::int32_t kStand = 1;

bool is_signal(int number) { return number >= 1 && number <= 64; }

}  // namespace

ControlSignal encode_control(const Control& control) {
  if (const auto* stop = std::get_if<StopJob>(&control)) {
    return {kStopSignal, (static_cast<std::int32_t>(stop->reason) << 8) | (stop->signal & 0xff)};
  }
  if (const auto* send = std::get_if<SendSignal>(&control)) return {kSendSignal, send->signal};
  if (std::holds_alternative<SuspendJob>(control)) return {kStandSignal, kStand};
  if (std::holds_alternative<ResumeJob>(control)) return {kStandSignal, kGoOn};
  using Rep = std::chrono::seconds::rep;
  const auto& limit = std::get<SetLimit>(control).limit;
  constexpr Rep kMax = std::numeric_limits<std::int32_t>::max();
  return {kLimitSignal,
          limit ? static_cast<std::int32_t>(std::clamp(limit->count(), Rep{1}, kMax)) : 0};
}

std::optional<Control> decode_control(ControlSignal signal) {
  if (signal.value < 0) return std::nullopt;
  if (signal.number == kLimitSignal) {
    if (signal.value == 0) return SetLimit{};
    return SetLimit{std::chrono::seconds(signal.value)};
  }
  if (signal.number == kStandSignal) {
    if (signal.value == kStand) return SuspendJob{};
    if (signal.value == kGoOn) return ResumeJob{};
    return std::nullopt;
  }
  if (signal.number == kSendSignal && is_signal(signal.value)) return SendSignal{signal.value};
  if (signal.number != kStopSignal) return std::nullopt;
  const int number = signal.value & 0xff;
  const auto reason = ending_of(static_cast<std::uint32_t>(signal.value >> 8));
  if (!is_signal(number) || !reason) return std::nullopt;
  return StopJob{number, *reason};
}

}  // namespace gflow::attempt
