// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>

#include "cuda/abi.h"

// Nanoseconds of a launch, by a driver that does nothing in it: the median of 21 times a million.
// bench/launch_bench.py runs it with the interposer and without.
namespace abi = gflow::cuda::abi;

int main() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (library == nullptr) {
    (void)std::fprintf(stderr, "%s\n", ::dlerror());
    return 1;
  }
  auto* launch = reinterpret_cast<abi::call::cuLaunchKernel*>(::dlsym(library, "cuLaunchKernel"));
  constexpr int kLaunches = 1'000'000;
  std::array<double, 21> times{};
  for (double& each : times) {
    const auto start = std::chrono::steady_clock::now();
    for (int count = 0; count < kLaunches; ++count) {
      (void)launch(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    each = took.count() / kLaunches;
  }
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  (void)std::printf("%.2f\n", times[times.size() / 2]);
  return 0;
}
