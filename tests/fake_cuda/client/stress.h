// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <utility>
#include <vector>

#include "client/driver.h"

namespace client {

/// One thread's memory of every kind, got and given back at random.
class Stress {
 public:
  Stress(const Functions& functions, std::uint64_t seed)
      : cu_(functions), random_(static_cast<std::minstd_rand::result_type>(seed)) {}

  void run(std::uint64_t steps) {
    for (std::uint64_t step = 0; step < steps; ++step) {
      if (held_.size() < 12 && random_() % 2 == 0) {
        get();
      } else if (!held_.empty()) {
        give_back(random_() % held_.size());
      }
    }
  }

 private:
  using GiveBack = std::function<void()>;
  std::uint64_t bytes() { return (1 + random_() % 512) << 20; }

  /// What was refused is not held.
  void keep(abi::Result result, GiveBack give_back) {
    if (result == abi::kSuccess) held_.push_back(std::move(give_back));
  }
  void get() {
    switch (random_() % 6) {
      case 0:
        return get_plain();
      case 1:
        return get_managed();
      case 2:
        return get_rows();
      case 3:
        return get_array();
      case 4:
        return get_of_pool();
      default:
        return get_mapped();
    }
  }
  void get_plain() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAlloc(&at, bytes());
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_managed() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAllocManaged(&at, bytes(), 1);
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_rows() {
    abi::DevicePtr at = 0;
    std::size_t pitch = 0;
    const abi::Result result = cu_.cuMemAllocPitch(&at, &pitch, 1 + random_() % 5000, 4096, 4);
    keep(result, [this, at] { (void)cu_.cuMemFree(at); });
  }
  void get_array() {
    abi::Array made = nullptr;
    const abi::ArrayDescriptor descriptor{1 + random_() % 4096, 4096, abi::kFormatFloat, 2};
    const abi::Result result = cu_.cuArrayCreate(&made, &descriptor);
    keep(result, [this, made] { (void)cu_.cuArrayDestroy(made); });
  }
  void get_of_pool() {
    abi::DevicePtr at = 0;
    const abi::Result result = cu_.cuMemAllocAsync(&at, bytes(), nullptr);
    keep(result, [this, at] {
      (void)cu_.cuMemFreeAsync(at, nullptr);
      if (random_() % 4 == 0) (void)cu_.cuStreamSynchronize(nullptr);
    });
  }
  void get_mapped() {
    const abi::AllocationProp prop{.type = abi::kAllocationPinned,
                                   .requested_handle_types = 0,
                                   .location = {abi::kLocationDevice, 0},
                                   .handle_meta_data = nullptr,
                                   .flags = {}};
    const std::uint64_t size = bytes() * 2;
    abi::MemHandle handle = 0;
    const abi::Result result = cu_.cuMemCreate(&handle, size, &prop, 0);
    if (result != abi::kSuccess) return;
    abi::DevicePtr at = 0;
    (void)cu_.cuMemAddressReserve(&at, size, 0, 0, 0);
    (void)cu_.cuMemMap(at, size, 0, handle, 0);
    (void)cu_.cuMemRelease(handle);
    keep(result, [this, at, size] { (void)cu_.cuMemUnmap(at, size); });
  }
  void give_back(std::size_t which) {
    held_[which]();
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  const Functions& cu_;
  std::minstd_rand random_;
  std::vector<GiveBack> held_;
};

}  // namespace client
