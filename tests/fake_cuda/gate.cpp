// SPDX-License-Identifier: Apache-2.0
#include "gate.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "machine.h"

namespace fake_cuda {
namespace {

thread_local int depth = 0;

struct Gate {
  std::mutex lock;
  std::condition_variable changed;
  std::map<std::string, int> counts;
  int under_way = 0;
  bool is_closed = false;
};

Gate& gate() {
  static auto* const made = new Gate;
  return *made;
}

}  // namespace

/// A call that the driver makes of itself passes: the one it belongs to has passed.
Call::Call(const char* function) {
  std::unique_lock lock(gate().lock);
  ++gate().counts[function];
  if (depth++ > 0) return;
  while (gate().is_closed) gate().changed.wait(lock);
  ++gate().under_way;
}

Call::~Call() {
  const std::lock_guard lock(gate().lock);
  if (--depth == 0) --gate().under_way;
}

int calls_of(const char* function) {
  const std::lock_guard lock(gate().lock);
  return gate().counts[function];
}

/// Looks again each millisecond: what is under way may wait for a GPU, which wakes nobody.
bool close_gate(std::optional<std::uint64_t> until) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  while (true) {
    {
      const std::lock_guard lock(gate().lock);
      gate().is_closed = true;
      if (gate().under_way == 0) return true;
    }
    if (until && now() >= *until) break;
    sleep_until(now() + kMillisecond);
  }
  open_gate();
  return false;
}

void open_gate() {
  const std::lock_guard lock(gate().lock);
  gate().is_closed = false;
  gate().changed.notify_all();
}

}  // namespace fake_cuda
