// SPDX-License-Identifier: Apache-2.0
#include "interpose/holdings.h"
#include "interpose/outstanding.h"
#include "interpose/real.h"
#include "interpose/session.h"

// A context takes its memory with it.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace {

template <typename Destroy>
abi::Result destroy_context(abi::Context context, Destroy destroy) {
  LaunchesSetAside launches(context);
  const abi::Result result = destroy();
  if (result != abi::kSuccess) return result;
  launches.forget();
  if (Session::get().limits()) drop_context(context);
  return result;
}

bool is_active(abi::Device device) {
  unsigned int flags = 0;
  int active = 0;
  return call(driver().cuDevicePrimaryCtxGetState, device, &flags, &active) == abi::kSuccess &&
         active != 0;
}

/// The primary context of a device; null if there is none, and none is made.
abi::Context primary_context(abi::Device device) {
  abi::Context context = nullptr;
  if (!is_active(device)) return nullptr;
  if (call(driver().cuDevicePrimaryCtxRetain, &context, device) != abi::kSuccess) return nullptr;
  (void)call(driver().cuDevicePrimaryCtxRelease_v2, device);
  return context;
}

/// `end` resets it, or takes one of the reasons to keep it.
template <typename End>
abi::Result end_primary(abi::Device device, End end) {
  if (!Session::get().limits() || InDriver::is_inside()) return end();
  abi::Context context = primary_context(device);
  LaunchesSetAside launches(context);
  const abi::Result result = end();
  if (result != abi::kSuccess || context == nullptr || is_active(device)) return result;
  launches.forget();
  drop_context(context);
  return result;
}

/// What is reset may be kept by others and goes on, empty.
template <typename Reset>
abi::Result reset_primary(abi::Device device, Reset reset) {
  if (!Session::get().limits() || InDriver::is_inside()) return reset();
  abi::Context context = primary_context(device);
  return destroy_context(context, reset);
}

}  // namespace

GFLOW_EXPORT abi::Result cuCtxDestroy(abi::Context context) {
  return destroy_context(context, [&] { return call(driver().cuCtxDestroy, context); });
}

GFLOW_EXPORT abi::Result cuCtxDestroy_v2(abi::Context context) {
  return destroy_context(context, [&] { return call(driver().cuCtxDestroy_v2, context); });
}

GFLOW_EXPORT abi::Result cuDevicePrimaryCtxRelease(abi::Device device) {
  return end_primary(device, [&] { return call(driver().cuDevicePrimaryCtxRelease, device); });
}

GFLOW_EXPORT abi::Result cuDevicePrimaryCtxRelease_v2(abi::Device device) {
  return end_primary(device, [&] { return call(driver().cuDevicePrimaryCtxRelease_v2, device); });
}

GFLOW_EXPORT abi::Result cuDevicePrimaryCtxReset(abi::Device device) {
  return reset_primary(device, [&] { return call(driver().cuDevicePrimaryCtxReset, device); });
}

GFLOW_EXPORT abi::Result cuDevicePrimaryCtxReset_v2(abi::Device device) {
  return reset_primary(device, [&] { return call(driver().cuDevicePrimaryCtxReset_v2, device); });
}
