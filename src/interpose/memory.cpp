// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <optional>

#include "cuda/array_format.h"
#include "interpose/holdings.h"
#include "interpose/pools.h"
#include "interpose/real.h"
#include "interpose/session.h"

// Memory, and arrays, of the calling thread's context: reserved before the driver is asked.
using namespace gflow::interpose;  // NOLINT(google-build-using-namespace): the C interface is
                                   // global

namespace {

std::optional<std::size_t> charged_device() {
  if (InDriver::is_inside()) return std::nullopt;
  return Session::get().current_device();
}

/// `get` asks the driver, `handle_of` tells what it gave.
template <typename Get, typename HandleOf>
abi::Result get_charged(Kind kind, std::uint64_t bytes, Get get, HandleOf handle_of) {
  const auto device = charged_device();
  if (!device) return get();
  const Charge charge{*device, rounded(bytes, kUnit)};
  if (!reserve(charge.device, charge.bytes)) return abi::kOutOfMemory;
  const abi::Result result = get();
  if (result != abi::kSuccess) {
    refund(charge);
  } else {
    hold(kind, handle_of(), charge);
  }
  return result;
}

/// Freed first: until then it is the device's.
template <typename Free>
abi::Result free_charged(Kind kind, std::uint64_t handle, Free free) {
  // Out of the table before another thread can be given the same handle.
  const auto charge = InDriver::is_inside() ? std::nullopt : release(kind, handle);
  const abi::Result result = free();
  if (!charge) {
    if (result == abi::kSuccess) settle_pools();  // it may have been a pool's
  } else if (result == abi::kSuccess) {
    refund(*charge);
  } else {
    hold(kind, handle, *charge);
  }
  return result;
}

std::uint64_t array_bytes(const abi::Array3dDescriptor& array) {
  if ((array.flags & (abi::kArraySparse | abi::kArrayDeferred)) != 0) return 0;
  const auto at_least_one = [](std::uint64_t count) { return std::max<std::uint64_t>(count, 1); };
  const auto element = gflow::cuda::array_element(array.format, at_least_one(array.channels));
  return rounded(array.width, element.in_blocks) *
         rounded(at_least_one(array.height), element.in_blocks) * at_least_one(array.depth) *
         element.bits / 8;
}

std::uint64_t mipmap_bytes(abi::Array3dDescriptor array, unsigned int levels) {
  std::uint64_t sum = 0;
  for (unsigned int level = 0; level < std::max(levels, 1U); ++level) {
    sum += array_bytes(array);
    array.width = std::max<std::size_t>(array.width / 2, 1);
    array.height /= array.height > 1 ? 2 : 1;
    array.depth /= array.depth > 1 ? 2 : 1;
  }
  return sum;
}

/// `get` asks the driver for the array.
template <typename Get>
abi::Result get_array(abi::Array* array, std::uint64_t bytes, Get get) {
  return get_charged(
      Kind::Array, bytes, get, [&] { return reinterpret_cast<std::uint64_t>(*array); });
}

}  // namespace

GFLOW_EXPORT abi::Result cuMemAlloc(abi::DevicePtrV1* pointer, unsigned int bytes) {
  return get_charged(
      Kind::Pointer,
      bytes,
      [&] { return call(driver().cuMemAlloc, pointer, bytes); },
      [&] { return *pointer; });
}

GFLOW_EXPORT abi::Result cuMemAlloc_v2(abi::DevicePtr* pointer, std::size_t bytes) {
  return get_charged(
      Kind::Pointer,
      bytes,
      [&] { return call(driver().cuMemAlloc_v2, pointer, bytes); },
      [&] { return *pointer; });
}

GFLOW_EXPORT abi::Result cuMemAllocManaged(abi::DevicePtr* pointer,
                                           std::size_t bytes,
                                           unsigned int flags) {
  return get_charged(
      Kind::Pointer,
      bytes,
      [&] { return call(driver().cuMemAllocManaged, pointer, bytes, flags); },
      [&] { return *pointer; });
}

/// How far apart rows are is known afterwards: a row is charged as what it is at least, then as
/// what it became.
GFLOW_EXPORT abi::Result cuMemAllocPitch_v2(abi::DevicePtr* pointer,
                                            std::size_t* pitch,
                                            std::size_t width,
                                            std::size_t height,
                                            unsigned int element) {
  const auto get = [&] {
    return call(driver().cuMemAllocPitch_v2, pointer, pitch, width, height, element);
  };
  const auto device = charged_device();
  std::uint64_t bytes = 0;
  if (!device || __builtin_mul_overflow(rounded(width, kUnit), height, &bytes)) return get();
  Charge charge{*device, bytes};
  if (!reserve(charge.device, charge.bytes)) return abi::kOutOfMemory;
  const abi::Result result = get();
  if (result != abi::kSuccess) {
    refund(charge);
    return result;
  }
  if (!adjust(charge, rounded(*pitch * height, kUnit))) {
    (void)call(driver().cuMemFree_v2, *pointer);
    refund(charge);
    return abi::kOutOfMemory;
  }
  hold(Kind::Pointer, *pointer, charge);
  return result;
}

GFLOW_EXPORT abi::Result cuMemFree(abi::DevicePtrV1 pointer) {
  return free_charged(Kind::Pointer, pointer, [&] { return call(driver().cuMemFree, pointer); });
}

GFLOW_EXPORT abi::Result cuMemFree_v2(abi::DevicePtr pointer) {
  return free_charged(Kind::Pointer, pointer, [&] { return call(driver().cuMemFree_v2, pointer); });
}

GFLOW_EXPORT abi::Result cuArrayCreate_v2(abi::Array* array,
                                          const abi::ArrayDescriptor* descriptor) {
  const auto get = [&] { return call(driver().cuArrayCreate_v2, array, descriptor); };
  if (descriptor == nullptr) return get();
  return get_array(array,
                   array_bytes({.width = descriptor->width,
                                .height = descriptor->height,
                                .depth = 0,
                                .format = descriptor->format,
                                .channels = descriptor->channels,
                                .flags = 0}),
                   get);
}

GFLOW_EXPORT abi::Result cuArray3DCreate_v2(abi::Array* array,
                                            const abi::Array3dDescriptor* descriptor) {
  const auto get = [&] { return call(driver().cuArray3DCreate_v2, array, descriptor); };
  if (descriptor == nullptr) return get();
  return get_array(array, array_bytes(*descriptor), get);
}

GFLOW_EXPORT abi::Result cuArrayDestroy(abi::Array array) {
  return free_charged(Kind::Array, reinterpret_cast<std::uint64_t>(array), [&] {
    return call(driver().cuArrayDestroy, array);
  });
}

GFLOW_EXPORT abi::Result cuMipmappedArrayCreate(abi::MipmappedArray* array,
                                                const abi::Array3dDescriptor* descriptor,
                                                unsigned int levels) {
  const auto get = [&] { return call(driver().cuMipmappedArrayCreate, array, descriptor, levels); };
  if (descriptor == nullptr) return get();
  return get_charged(Kind::MipmappedArray, mipmap_bytes(*descriptor, levels), get, [&] {
    return reinterpret_cast<std::uint64_t>(*array);
  });
}

GFLOW_EXPORT abi::Result cuMipmappedArrayDestroy(abi::MipmappedArray array) {
  return free_charged(Kind::MipmappedArray, reinterpret_cast<std::uint64_t>(array), [&] {
    return call(driver().cuMipmappedArrayDestroy, array);
  });
}
