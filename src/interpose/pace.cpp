// SPDX-License-Identifier: Apache-2.0
#include "interpose/pace.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

#include "interpose/holdings.h"
#include "interpose/real.h"

namespace gflow::interpose {
namespace {

constexpr std::uint64_t kLongestPause = 10 * kMillisecond;

struct Keeping {
  void* (*keep)(void*);
  void* argument;
};

void* keep_as_told(void* given) {
  const Keeping told = *static_cast<Keeping*>(given);
  delete static_cast<Keeping*>(given);  // NOLINT(cppcoreguidelines-owning-memory): made below
  // What sleeps for a tenth of a millisecond is not to sleep longer.
  (void)::prctl(PR_SET_TIMERSLACK, kMicrosecond, 0, 0, 0);
  (void)::prctl(PR_SET_NAME, "gflow-share", 0, 0, 0);
  int mode = abi::kCaptureRelaxed;
  (void)call(driver().cuThreadExchangeStreamCaptureMode, &mode);
  return told.keep(told.argument);
}

}  // namespace

std::uint64_t now() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_for(std::uint64_t length) {
  const timespec time{.tv_sec = static_cast<time_t>(length / 1'000'000'000),
                      .tv_nsec = static_cast<long>(length % 1'000'000'000)};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

bool start_keeper_thread(void* (*keep)(void*), void* argument) {
  sigset_t all;
  sigset_t before;
  (void)::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the thread's
  auto* const told = new Keeping{keep, argument};
  const bool is_made = ::pthread_create(&thread, nullptr, keep_as_told, told) == 0;
  if (is_made) {
    (void)::pthread_detach(thread);
  } else {
    delete told;  // NOLINT(cppcoreguidelines-owning-memory)
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_made;
}

std::uint64_t LookedTime::at(std::uint64_t time) {
  passed_ += std::min(time - std::min(looked_at_, time), kLongestPause);
  looked_at_ = time;
  return passed_;
}

std::uint64_t OddPace::about(std::uint64_t length) {
  random_ = random_ * 6'364'136'223'846'793'005 + 1'442'695'040'888'963'407;
  return length / 2 + (random_ >> 32) % length;
}

}  // namespace gflow::interpose
