// SPDX-License-Identifier: Apache-2.0
#include "interpose/holdings.h"

#include <array>
#include <mutex>
#include <new>
#include <unordered_map>

#include "interpose/pools.h"
#include "interpose/real.h"
#include "interpose/session.h"
#include "interpose/vmm.h"

namespace gflow::interpose {
namespace {

struct Held {
  Charge charge;
  abi::Context context = nullptr;
};
struct Holdings {
  std::mutex lock;
  std::array<std::unordered_map<std::uint64_t, Held>, 3> of_kind;

  std::unordered_map<std::uint64_t, Held>& of(Kind kind) {
    return of_kind[static_cast<std::size_t>(kind)];
  }
};

Holdings& holdings() {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): in use until the very end of the process
  static auto* const its = new Holdings;
  return *its;
}

abi::Context current_context() {
  abi::Context context = nullptr;
  if (call(driver().cuCtxGetCurrent, &context) != abi::kSuccess) return nullptr;
  return context;
}

}  // namespace

int& InDriver::depth() {
  static thread_local int its = 0;
  return its;
}

bool reserve(std::size_t device, std::uint64_t bytes) {
  Session& session = Session::get();
  if (session.try_reserve(device, bytes)) return true;
  settle_pools();
  if (session.try_reserve(device, bytes)) return true;
  session.sweep();
  if (session.try_reserve(device, bytes)) return true;
  session.count_refusal(device);
  return false;
}

bool adjust(Charge& charge, std::uint64_t bytes) {
  if (bytes > charge.bytes && !reserve(charge.device, bytes - charge.bytes)) return false;
  if (bytes < charge.bytes) Session::get().refund(charge.device, charge.bytes - bytes);
  charge.bytes = bytes;
  return true;
}

void refund(const Charge& charge) { Session::get().refund(charge.device, charge.bytes); }

void hold(Kind kind, std::uint64_t handle, const Charge& charge) {
  const abi::Context context = current_context();
  const std::lock_guard lock(holdings().lock);
  holdings().of(kind)[handle] = {charge, context};
}

std::optional<Charge> release(Kind kind, std::uint64_t handle) {
  const std::lock_guard lock(holdings().lock);
  auto& its = holdings().of(kind);
  const auto found = its.find(handle);
  if (found == its.end()) return std::nullopt;
  const Charge charge = found->second.charge;
  its.erase(found);
  return charge;
}

void drop_context(abi::Context context) {
  const std::lock_guard lock(holdings().lock);
  for (auto& its : holdings().of_kind) {
    std::erase_if(its, [&](const auto& entry) {
      if (entry.second.context != context) return false;
      refund(entry.second.charge);
      return true;
    });
  }
}

void forget_holdings() {
  new (&holdings()) Holdings;  // what was the parent's may be locked
  forget_pools();
  forget_mappings();
}

}  // namespace gflow::interpose
