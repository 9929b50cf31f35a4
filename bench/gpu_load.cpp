// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "cuda/abi.h"

// What a program does to a GPU, for gpu_bench.py: kernels of a length one after another, one at a
// time with pauses, or memory until there is none. It needs the driver and nothing of a toolkit.
//
//   gpu_load calibrate                                   rounds of the kernel in a microsecond
//   gpu_load busy ROUNDS FROM SECONDS MICROSECONDS AT_ONCE PAUSE
//                                                        kernels done in that time
//   gpu_load latency ROUNDS FROM SECONDS MICROSECONDS PAUSE
//                                                        medians and 99th percentiles, microseconds
//   gpu_load launches                                    nanoseconds of a launch, to the program
//   gpu_load calls                                       nanoseconds of calls beside a launch
//   gpu_load memory                                      bytes given, and how large the GPU is said
//   to be
//
// FROM is a time of CLOCK_REALTIME in milliseconds, so that programs begin together.
namespace abi = gflow::cuda::abi;

namespace {

/// One block is busy for as many rounds, each of the time of a multiplication that waits for the
/// one before it; the others are there for a driver that counts blocks (tests/fake_cuda).
constexpr const char* kKernel = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry spin(.param .u64 rounds, .param .u64 result)
{
  .reg .pred %last;
  .reg .f32 %value;
  .reg .u32 %block;
  .reg .u64 %left, %at;
  mov.u32 %block, %ctaid.x;
  setp.ne.u32 %last, %block, 0;
  @%last bra done;
  ld.param.u64 %left, [rounds];
  ld.param.u64 %at, [result];
  mov.f32 %value, 0f3F800000;
again:
  fma.rn.f32 %value, %value, %value, %value;
  sub.u64 %left, %left, 1;
  setp.ne.u64 %last, %left, 0;
  @%last bra again;
  setp.eq.u64 %last, %at, 0;
  @%last bra done;
  st.global.f32 [%at], %value;
done:
  ret;
}
)";

void* library() {
  static void* const opened = ::dlopen("libcuda.so.1", RTLD_NOW);
  if (opened != nullptr) return opened;
  (void)std::fprintf(stderr, "gpu_load: %s\n", ::dlerror());
  std::exit(1);
}

void check(abi::Result result, const char* what) {
  if (result == abi::kSuccess) return;
  (void)std::fprintf(stderr, "gpu_load: %s: error %d of the driver\n", what, result);
  std::exit(1);
}

template <typename F>
F* driver(const char* name) {
  auto* const found = reinterpret_cast<F*>(::dlsym(library(), name));
  if (found != nullptr) return found;
  (void)std::fprintf(stderr, "gpu_load: the driver has no %s\n", name);
  std::exit(1);
}
#define DRIVER(name) driver<abi::call::name>(#name)

std::uint64_t nanoseconds(clockid_t clock) {
  timespec time{};
  (void)::clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_for(std::uint64_t length) {
  const timespec time{.tv_sec = static_cast<time_t>(length / 1'000'000'000),
                      .tv_nsec = static_cast<long>(length % 1'000'000'000)};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

void wait_until(std::uint64_t milliseconds) {
  const std::uint64_t now = nanoseconds(CLOCK_REALTIME);
  if (milliseconds * 1'000'000 > now) sleep_for(milliseconds * 1'000'000 - now);
}

/// A context of the first GPU the program may use, and the kernel in it.
class Gpu {
 public:
  Gpu() {
    check(DRIVER(cuInit)(0), "cuInit");
    abi::Context context = nullptr;
    check(DRIVER(cuDevicePrimaryCtxRetain)(&context, 0), "cuDevicePrimaryCtxRetain");
    check(DRIVER(cuCtxSetCurrent)(context), "cuCtxSetCurrent");
    abi::Module module = nullptr;
    check(DRIVER(cuModuleLoadData)(&module, kKernel), "cuModuleLoadData");
    check(DRIVER(cuModuleGetFunction)(&kernel_, module, "spin"), "cuModuleGetFunction");
  }

  void launch(std::uint64_t rounds, unsigned int blocks) {
    std::uint64_t result = 0;
    void* parameters[] = {&rounds, &result};
    check(launch_(kernel_, blocks, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
          "cuLaunchKernel");
  }
  void wait() { check(wait_(nullptr), "cuStreamSynchronize"); }

 private:
  abi::Function kernel_ = nullptr;
  abi::call::cuLaunchKernel* launch_ = DRIVER(cuLaunchKernel);
  abi::call::cuStreamSynchronize* wait_ = DRIVER(cuStreamSynchronize);
};

/// The best of ten: the clock of the GPU rises with the first.
void calibrate() {
  Gpu gpu;
  constexpr std::uint64_t kRounds = 1'000'000;
  constexpr unsigned int kBlocks = 1000;
  std::uint64_t best = ~std::uint64_t{0};
  for (int again = 0; again < 10; ++again) {
    const std::uint64_t start = nanoseconds(CLOCK_MONOTONIC);
    gpu.launch(kRounds, kBlocks);
    gpu.wait();
    best = std::min(best, nanoseconds(CLOCK_MONOTONIC) - start);
  }
  (void)std::printf("%.3f\n", static_cast<double>(kRounds) * 1000 / static_cast<double>(best));
}

struct Work {
  std::uint64_t rounds;
  std::uint64_t from;
  std::uint64_t length;  ///< nanoseconds
  std::uint64_t microseconds;
};

void busy(const Work& work, std::uint64_t at_once, std::uint64_t pause) {
  Gpu gpu;
  wait_until(work.from);
  const std::uint64_t end = nanoseconds(CLOCK_MONOTONIC) + work.length;
  std::uint64_t done = 0;
  while (nanoseconds(CLOCK_MONOTONIC) < end) {
    for (std::uint64_t one = 0; one < at_once; ++one) {
      gpu.launch(work.rounds * work.microseconds, static_cast<unsigned>(work.microseconds));
    }
    gpu.wait();
    done += at_once;
    if (pause > 0) sleep_for(pause * 1000);
  }
  (void)std::printf("%llu\n", static_cast<unsigned long long>(done));
}

void latency(const Work& work, std::uint64_t pause) {
  Gpu gpu;
  wait_until(work.from);
  std::vector<std::uint64_t> took;
  const std::uint64_t end = nanoseconds(CLOCK_MONOTONIC) + work.length;
  while (nanoseconds(CLOCK_MONOTONIC) < end) {
    sleep_for(pause * 1000);
    const std::uint64_t start = nanoseconds(CLOCK_MONOTONIC);
    gpu.launch(work.rounds * work.microseconds, static_cast<unsigned>(work.microseconds));
    gpu.wait();
    took.push_back(nanoseconds(CLOCK_MONOTONIC) - start);
  }
  std::ranges::sort(took);
  (void)std::printf("%.0f %.0f\n",
                    static_cast<double>(took[took.size() / 2]) / 1000,
                    static_cast<double>(took[took.size() * 99 / 100]) / 1000);
}

/// The median of lots that fit into what a driver queues, each waited for before the next.
void launches() {
  Gpu gpu;
  constexpr std::size_t kLots = 401;
  constexpr std::uint64_t kEach = 500;
  std::vector<std::uint64_t> took;
  for (std::size_t lot = 0; lot < kLots; ++lot) {
    const std::uint64_t start = nanoseconds(CLOCK_MONOTONIC);
    for (std::uint64_t one = 0; one < kEach; ++one) gpu.launch(1, 1);
    took.push_back(nanoseconds(CLOCK_MONOTONIC) - start);
    gpu.wait();
  }
  std::ranges::sort(took);
  (void)std::printf("%.0f\n", static_cast<double>(took[kLots / 2]) / kEach);
}

template <typename Call>
void time_calls(const char* name, Call call) {
  constexpr std::uint64_t kCalls = 500;
  std::uint64_t best = ~std::uint64_t{0};
  for (int again = 0; again < 20; ++again) {
    const std::uint64_t start = nanoseconds(CLOCK_MONOTONIC);
    for (std::uint64_t one = 0; one < kCalls; ++one) call();
    best = std::min(best, nanoseconds(CLOCK_MONOTONIC) - start);
    check(DRIVER(cuStreamSynchronize)(nullptr), "cuStreamSynchronize");
  }
  (void)std::printf("%s %.0f\n", name, static_cast<double>(best) / kCalls);
}

void calls() {
  Gpu gpu;
  abi::Event event = nullptr;
  check(DRIVER(cuEventCreate)(&event, abi::kEventWithoutTime), "cuEventCreate");
  abi::Context context = nullptr;
  abi::Device device = 0;
  int status = 0;
  time_calls("launch", [&] { gpu.launch(1, 1); });
  time_calls("cuEventRecord", [&, record = DRIVER(cuEventRecord)] { record(event, nullptr); });
  time_calls("launch and cuEventRecord", [&, record = DRIVER(cuEventRecord)] {
    gpu.launch(1, 1);
    record(event, nullptr);
  });
  time_calls("cuEventQuery", [&, query = DRIVER(cuEventQuery)] { query(event); });
  time_calls("cuStreamIsCapturing",
             [&, ask = DRIVER(cuStreamIsCapturing)] { ask(nullptr, &status); });
  time_calls("cuCtxGetCurrent", [&, ask = DRIVER(cuCtxGetCurrent)] { ask(&context); });
  time_calls("cuCtxGetDevice", [&, ask = DRIVER(cuCtxGetDevice)] { ask(&device); });
}

void memory() {
  const Gpu gpu;
  std::size_t free = 0;
  std::size_t total = 0;
  check(DRIVER(cuMemGetInfo_v2)(&free, &total), "cuMemGetInfo");
  auto* const allocate = DRIVER(cuMemAlloc_v2);
  constexpr std::size_t kChunk = std::size_t{64} << 20;
  std::size_t given = 0;
  abi::DevicePtr pointer{};
  while (allocate(&pointer, kChunk) == abi::kSuccess) given += kChunk;
  (void)std::printf("%zu %zu\n", given, total);
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string_view> given(words + 1, words + count);
  const auto number = [&](std::size_t at) {
    return at < given.size() ? std::strtoull(given[at].data(), nullptr, 10) : 0;
  };
  const Work work{.rounds = number(1),
                  .from = number(2),
                  .length = number(3) * 1'000'000'000,
                  .microseconds = number(4)};
  const std::string_view what = given.empty() ? "" : given.front();
  if (what == "calibrate") {
    calibrate();
  } else if (what == "busy" && given.size() == 7) {
    busy(work, number(5), number(6));
  } else if (what == "latency" && given.size() == 6) {
    latency(work, number(5));
  } else if (what == "launches") {
    launches();
  } else if (what == "calls") {
    calls();
  } else if (what == "memory") {
    memory();
  } else {
    (void)std::fprintf(stderr,
                       "gpu_load: calibrate, busy, latency, launches, calls or memory; see "
                       "bench/gpu_load.cpp\n");
    return 2;
  }
  return 0;
}
