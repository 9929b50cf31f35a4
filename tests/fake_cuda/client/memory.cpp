// SPDX-License-Identifier: Apache-2.0
#include "client/commands.h"

namespace client {
namespace {

void add_mapped(Commands& commands, const Functions& cu) {
  commands["create"] = [&](const Request& asked) {
    const abi::AllocationProp prop{.type = abi::kAllocationPinned,
                                   .requested_handle_types = 0,
                                   .location = {static_cast<int>(asked.number(1)), 0},
                                   .handle_meta_data = nullptr,
                                   .flags = {}};
    return made<abi::MemHandle>(
        [&](auto* out) { return cu.cuMemCreate(out, asked.number(0), &prop, 0); });
  };
  commands["release"] = [&](const Request& asked) {
    return said(cu.cuMemRelease(asked.number(0)));
  };
  commands["retain"] = [&](const Request& asked) {
    return made<abi::MemHandle>(
        [&](auto* out) { return cu.cuMemRetainAllocationHandle(out, asked.handle<void*>(0)); });
  };
  commands["address"] = [&](const Request& asked) {
    return made<abi::DevicePtr>(
        [&](auto* out) { return cu.cuMemAddressReserve(out, asked.number(0), 0, 0, 0); });
  };
  commands["map"] = [&](const Request& asked) {
    return said(cu.cuMemMap(asked.number(0), asked.number(1), 0, asked.number(2), 0));
  };
  commands["unmap"] = [&](const Request& asked) {
    return said(cu.cuMemUnmap(asked.number(0), asked.number(1)));
  };
}

/// "WIDTH HEIGHT DEPTH [FORMAT CHANNELS]": of halves, unless it says something else.
abi::Array3dDescriptor volume(const Request& asked) {
  const bool is_of_halves = asked.numbers.size() < 5;
  return {asked.number(0),
          asked.number(1),
          asked.number(2),
          is_of_halves ? abi::kFormatHalf : static_cast<int>(asked.number(3)),
          is_of_halves ? 1 : static_cast<unsigned int>(asked.number(4)),
          0};
}

void add_arrays(Commands& commands, const Functions& cu) {
  commands["array"] = [&](const Request& asked) {
    const abi::ArrayDescriptor descriptor{asked.number(0), asked.number(1), abi::kFormatFloat, 2};
    return made<abi::Array>([&](auto* out) { return cu.cuArrayCreate(out, &descriptor); });
  };
  commands["array3d"] = [&](const Request& asked) {
    const abi::Array3dDescriptor descriptor = volume(asked);
    return made<abi::Array>([&](auto* out) { return cu.cuArray3DCreate(out, &descriptor); });
  };
  commands["free_array"] = [&](const Request& asked) {
    return said(cu.cuArrayDestroy(asked.handle<abi::Array>(0)));
  };
  commands["mipmap"] = [&](const Request& asked) {
    const abi::Array3dDescriptor descriptor = volume(asked);
    return made<abi::MipmappedArray>(
        [&](auto* out) { return cu.cuMipmappedArrayCreate(out, &descriptor, 3); });
  };
  commands["free_mipmap"] = [&](const Request& asked) {
    return said(cu.cuMipmappedArrayDestroy(asked.handle<abi::MipmappedArray>(0)));
  };
}

}  // namespace

void add_memory(Commands& commands, const Functions& cu) {
  commands["alloc"] = [&](const Request& asked) {
    return made<abi::DevicePtr>([&](auto* out) { return cu.cuMemAlloc(out, asked.number(0)); });
  };
  commands["managed"] = [&](const Request& asked) {
    return made<abi::DevicePtr>(
        [&](auto* out) { return cu.cuMemAllocManaged(out, asked.number(0), 1); });
  };
  commands["pitch"] = [&](const Request& asked) {
    return made<abi::DevicePtr>([&](auto* out) {
      std::size_t pitch = 0;
      return cu.cuMemAllocPitch(out, &pitch, asked.number(0), asked.number(1), 4);
    });
  };
  commands["free"] = [&](const Request& asked) { return said(cu.cuMemFree(asked.number(0))); };
  commands["host"] = [&](const Request& asked) {
    void* memory = nullptr;
    return said(cu.cuMemHostAlloc(&memory, asked.number(0), 0));
  };
  add_mapped(commands, cu);
  add_arrays(commands, cu);
}

}  // namespace client
