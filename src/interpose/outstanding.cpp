// SPDX-License-Identifier: Apache-2.0
#include "interpose/outstanding.h"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <new>
#include <vector>

#include "interpose/holdings.h"
#include "interpose/real.h"

namespace gflow::interpose {
namespace {

/// Which stream: handles 0 and 2 mean another one in each thread, or context.
struct StreamKey {
  abi::Context context = nullptr;
  abi::Stream stream = nullptr;
  const void* thread = nullptr;  ///< whose it is; null if threads share it
  friend bool operator==(const StreamKey&, const StreamKey&) = default;
};
struct Last {
  StreamKey key;
  std::size_t device = 0;
  abi::Event event = nullptr;
  bool is_done = true;
  int set_aside = 0;  ///< by how many, and not to be asked about
};
struct Outstanding {
  std::mutex lock;
  std::vector<Last> lasts;
  bool has_ended = false;
};

Outstanding& outstanding() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static auto* const its = new Outstanding;
  return *its;
}

StreamKey key_of(abi::Stream stream, bool has_thread_streams) {
  static thread_local char own = 0;
  constexpr std::uintptr_t kOfThread = 2;  // CU_STREAM_PER_THREAD
  const auto handle = reinterpret_cast<std::uintptr_t>(stream);
  const bool is_threads = handle == kOfThread || (handle == 0 && has_thread_streams);
  StreamKey key{.stream = stream, .thread = is_threads ? &own : nullptr};
  (void)call(driver().cuCtxGetCurrent, &key.context);
  return key;
}

/// A thread that captures forbids others what might disturb it, unless they say that it does not.
abi::Event new_event() {
  int mode = abi::kCaptureRelaxed;
  (void)call(driver().cuThreadExchangeStreamCaptureMode, &mode);
  abi::Event event = nullptr;
  (void)call(driver().cuEventCreate, &event, abi::kEventWithoutTime);
  (void)call(driver().cuThreadExchangeStreamCaptureMode, &mode);
  return event;
}

/// Under the lock. The stream's own, or one of its context that no stream needs; null if the driver
/// has no more.
Last* last_of(const StreamKey& key) {
  auto& lasts = outstanding().lasts;
  auto found = std::ranges::find_if(lasts, [&](const Last& last) { return last.key == key; });
  if (found == lasts.end()) {
    found = std::ranges::find_if(
        lasts, [&](const Last& last) { return last.is_done && last.key.context == key.context; });
  }
  if (found != lasts.end()) return &*found;
  abi::Event const event = new_event();
  if (event == nullptr) return nullptr;
  lasts.push_back({.event = event});
  return &lasts.back();
}

}  // namespace

void note_launch(std::size_t device, abi::Stream stream, const LaunchCalls& calls) {
  const StreamKey key = key_of(stream, calls.has_thread_streams);
  const std::lock_guard lock(outstanding().lock);
  if (outstanding().has_ended) return;
  Last* const last = last_of(key);
  if (last == nullptr) return;
  last->key = key;
  last->device = device;
  last->is_done = call(calls.record, last->event, stream) != abi::kSuccess;
}

bool is_all_done(std::size_t device) {
  const std::lock_guard lock(outstanding().lock);
  if (outstanding().has_ended) return true;
  abi::Context current = nullptr;
  bool is_all = true;
  for (Last& last : outstanding().lasts) {
    if (last.is_done || last.device != device) continue;
    if (last.set_aside > 0) {
      is_all = false;
      continue;
    }
    if (last.key.context != current) {
      current = last.key.context;
      (void)call(driver().cuCtxSetCurrent, current);
    }
    // An error of the program's is one that it is told itself.
    last.is_done = call(driver().cuEventQuery, last.event) != abi::kNotReady;
    is_all = is_all && last.is_done;
  }
  return is_all;
}

// Not by holding the lock: the context's end waits for its work, which may wait for a launch in
// another.
LaunchesSetAside::LaunchesSetAside(abi::Context context) : context_(context) {
  const std::lock_guard lock(outstanding().lock);
  for (Last& last : outstanding().lasts) {
    if (last.key.context == context_) ++last.set_aside;
  }
}

LaunchesSetAside::~LaunchesSetAside() {
  const std::lock_guard lock(outstanding().lock);
  for (Last& last : outstanding().lasts) {
    if (last.key.context == context_ && last.set_aside > 0) --last.set_aside;
  }
}

void LaunchesSetAside::forget() {
  const std::lock_guard lock(outstanding().lock);
  std::erase_if(outstanding().lasts,
                [this](const Last& last) { return last.key.context == context_; });
}

void end_launches() {
  const std::lock_guard lock(outstanding().lock);
  outstanding().has_ended = true;
}

void forget_outstanding() {
  new (&outstanding()) Outstanding;  // what was the parent's may be locked
}

}  // namespace gflow::interpose
