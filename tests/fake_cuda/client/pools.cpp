// SPDX-License-Identifier: Apache-2.0
#include "client/commands.h"

namespace client {
namespace {

abi::PoolProps of_device(const Request& asked) {
  return {.type = abi::kAllocationPinned,
          .handle_types = 0,
          .location = {abi::kLocationDevice, static_cast<int>(asked.number(0))},
          .security_attributes = nullptr,
          .max_size = 0,
          .usage = 0,
          .reserved = {}};
}

}  // namespace

void add_pools(Commands& commands, const Functions& cu) {
  commands["async"] = [&](const Request& asked) {
    return made<abi::DevicePtr>([&](auto* out) {
      return cu.cuMemAllocAsync(out, asked.number(0), asked.handle<abi::Stream>(1));
    });
  };
  commands["from_pool"] = [&](const Request& asked) {
    return made<abi::DevicePtr>([&](auto* out) {
      return cu.cuMemAllocFromPoolAsync(
          out, asked.number(0), asked.handle<abi::MemPool>(1), asked.handle<abi::Stream>(2));
    });
  };
  commands["free_async"] = [&](const Request& asked) {
    return said(cu.cuMemFreeAsync(asked.number(0), asked.handle<abi::Stream>(1)));
  };
  commands["pool"] = [&](const Request& asked) {
    const abi::PoolProps props = of_device(asked);
    return made<abi::MemPool>([&](auto* out) { return cu.cuMemPoolCreate(out, &props); });
  };
  commands["default_pool"] = [&](const Request& asked) {
    return made<abi::MemPool>([&](auto* out) {
      return cu.cuDeviceGetDefaultMemPool(out, static_cast<int>(asked.number(0)));
    });
  };
  commands["destroy_pool"] = [&](const Request& asked) {
    return said(cu.cuMemPoolDestroy(asked.handle<abi::MemPool>(0)));
  };
  commands["keep"] = [&](const Request& asked) {
    std::uint64_t bytes = asked.number(1);
    return said(cu.cuMemPoolSetAttribute(
        asked.handle<abi::MemPool>(0), abi::kPoolReleaseThreshold, &bytes));
  };
  commands["trim"] = [&](const Request& asked) {
    return said(cu.cuMemPoolTrimTo(asked.handle<abi::MemPool>(0), asked.number(1)));
  };
}

}  // namespace client
