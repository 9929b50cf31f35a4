// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "client/commands.h"
#include "client/stress.h"

// What several threads do at once.
namespace client {
namespace {

/// The contexts of threads are their own to set: each uses the caller's.
abi::Context own_context(const Functions& cu) {
  abi::Context context = nullptr;
  (void)cu.cuCtxGetCurrent(&context);
  return context;
}

/// "SEED STEPS": four threads, so many steps each; what they hold then they keep.
std::string stress(const Functions& cu, const Request& asked) {
  static std::vector<std::unique_ptr<Stress>> kept;
  std::vector<std::thread> threads;
  for (std::uint64_t thread = 0; thread < 4; ++thread) {
    kept.push_back(std::make_unique<Stress>(cu, asked.number(0) * 4 + thread));
    threads.emplace_back(
        [&cu, context = own_context(cu), steps = asked.number(1), its = kept.back().get()] {
          (void)cu.cuCtxSetCurrent(context);
          its->run(steps);
        });
  }
  for (std::thread& thread : threads) thread.join();
  return said(cu.cuStreamSynchronize(nullptr));
}

/// "ADDRESS BYTES": eight threads read that at once. How many read the same as the first.
std::string read_at_once(const Functions& cu, const Request& asked) {
  std::vector<std::string> read(8, std::string(asked.number(1), '\0'));
  std::atomic<std::size_t> waiting = read.size();
  std::vector<std::thread> threads;
  for (std::string& own : read) {
    threads.emplace_back([&] {
      --waiting;
      while (waiting > 0) (void)::sched_yield();
      (void)cu.cuMemcpyDtoH(own.data(), asked.number(0), own.size());
    });
  }
  for (std::thread& thread : threads) thread.join();
  return said(abi::kSuccess, std::ranges::count(read, read.front()));
}

/// Looks functions up from sixteen threads while libraries come and go.
std::string look_up(const Request& asked) {
  std::atomic<bool> ends = false;
  std::atomic<std::uint64_t> wrong = 0;
  std::vector<std::thread> threads;
  void* const expected = ::dlsym(driver_handle(RTLD_NOW), "cuMemAlloc_v2");
  for (int thread = 0; thread < 16; ++thread) {
    threads.emplace_back([&, rounds = asked.number(0)] {
      for (std::uint64_t round = 0; round < rounds; ++round) {
        void* const found =
            ::dlsym(round % 2 == 0 ? RTLD_DEFAULT : driver_handle(RTLD_NOW), "cuMemAlloc_v2");
        if (found != expected) ++wrong;
      }
    });
  }
  std::thread loader([&] {
    while (!ends) {
      if (void* const library = ::dlopen("libnvidia-ml.so.1", RTLD_NOW)) (void)::dlclose(library);
    }
  });
  for (std::thread& thread : threads) thread.join();
  ends = true;
  loader.join();
  return said(abi::kSuccess, wrong.load());
}

/// "BYTES FEW": one thread needs so many bytes, for which its stream has to be waited for, which
/// has a kernel that waits to be told; it is told after another thread got a few of another pool. A
/// program of which that one waits, too, is ended by its alarm.
std::string wait_for_memory(const Functions& cu, const Request& asked) {
  auto* const calls = of_fake<int(const char*)>("fakeCudaCalls");
  abi::Stream stream = nullptr;
  (void)cu.cuStreamCreate(&stream, 1);
  (void)cu.cuLaunchKernel(nullptr, 0, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
  const int before = calls("cuStreamSynchronize");
  (void)::alarm(60);
  abi::Result first = abi::kSuccess;
  std::thread waits([&, context = own_context(cu)] {
    (void)cu.cuCtxSetCurrent(context);
    abi::DevicePtr pointer = 0;
    first = cu.cuMemAllocAsync(&pointer, asked.number(0), stream);
  });
  while (calls("cuStreamSynchronize") == before) (void)::sched_yield();
  abi::DevicePtr pointer = 0;
  const abi::Result second = cu.cuMemAllocAsync(&pointer, asked.number(1), nullptr);
  of_fake<void(abi::Device)>("fakeCudaTell")(0);
  waits.join();
  (void)::alarm(0);
  return said(abi::kSuccess, first, second);
}

}  // namespace

void add_threads(Commands& commands, const Functions& cu) {
  commands["stress"] = [&](const Request& asked) { return stress(cu, asked); };
  commands["read_at_once"] = [&](const Request& asked) { return read_at_once(cu, asked); };
  commands["look_up"] = look_up;
  commands["wait_for_memory"] = [&](const Request& asked) { return wait_for_memory(cu, asked); };
}

}  // namespace client
