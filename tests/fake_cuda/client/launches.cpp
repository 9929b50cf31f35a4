// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <time.h>

#include <string>
#include <vector>

#include "client/commands.h"

namespace client {
namespace {

enum class Way : std::uint8_t { Kernel, Extended, Cooperative, Grid };

abi::Result launch(const Functions& cu, Way way, unsigned int blocks, abi::Stream stream) {
  switch (way) {
    case Way::Kernel:
      return cu.cuLaunchKernel(nullptr, blocks, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr);
    case Way::Cooperative:
      return cu.cuLaunchCooperativeKernel(nullptr, blocks, 1, 1, 1, 1, 1, 0, stream, nullptr);
    case Way::Grid:
      return cu.cuLaunchGridAsync(nullptr, static_cast<int>(blocks), 1, stream);
    case Way::Extended:
      break;
  }
  const abi::LaunchConfig config{blocks, 1, 1, 1, 1, 1, 0, stream, nullptr, 0};
  return cu.cuLaunchKernelEx(&config, nullptr, nullptr, nullptr);
}

/// "LAUNCHES BLOCKS STREAM": what the stream captured of them, to be launched.
std::string graph(const Functions& cu, const Request& asked) {
  auto* const stream = asked.handle<abi::Stream>(2);
  (void)cu.cuStreamBeginCapture(stream, abi::kCaptureGlobal);
  for (std::uint64_t count = asked.number(0); count > 0; --count) {
    (void)launch(cu, Way::Kernel, static_cast<unsigned int>(asked.number(1)), stream);
  }
  abi::Graph captured = nullptr;
  const abi::Result result = cu.cuStreamEndCapture(stream, &captured);
  if (result != abi::kSuccess) return said(result);
  return made<abi::GraphExec>([&](auto* out) { return cu.cuGraphInstantiate(out, captured, 0); });
}

std::uint64_t nanoseconds() {
  timespec time{};
  (void)::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_for(std::uint64_t microseconds) {
  const timespec time{.tv_sec = 0, .tv_nsec = static_cast<long>(microseconds * 1000)};
  (void)::clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

/// Behind a virtual clock: until all others that are counted in have come as far.
void leave_clock() {
  using Leave = void();
  auto* const leave = reinterpret_cast<Leave*>(::dlsym(RTLD_DEFAULT, "virtualClockLeave"));
  if (leave != nullptr) leave();
}

/// "MILLISECONDS AT_ONCE WHAT [MICROSECONDS]": launches all that time, and waits for its stream
/// when it has launched so many, and then for so long. What the device worked for it.
template <typename Launch>
std::string keep_busy(const Functions& cu, const Request& asked, Launch launch_one) {
  auto* const busy = of_fake<std::uint64_t(abi::Device)>("fakeCudaBusy");
  const std::uint64_t end = nanoseconds() + asked.number(0) * 1'000'000;
  const std::uint64_t before = busy(0);
  for (std::uint64_t launched = 1; nanoseconds() < end; ++launched) {
    const abi::Result result = launch_one();
    if (result != abi::kSuccess) return said(result);
    if (launched % asked.number(1) != 0) continue;
    (void)cu.cuStreamSynchronize(nullptr);
    if (asked.number(3) != 0) sleep_for(asked.number(3));
  }
  const std::uint64_t worked = busy(0) - before;
  leave_clock();
  return said(abi::kSuccess, worked);
}

/// "MILLISECONDS AT_ONCE MICROSECONDS CIRCLE SIZE TOGETHER CONTEXT DEVICE ...": all that time a
/// kernel on each device, and, where there is a CIRCLE, one that takes TOGETHER microseconds from
/// when SIZE devices have it; waits after so many rounds. What the devices worked for it, and how
/// many rounds there were.
class Training {
 public:
  Training(const Functions& cu, const Request& asked) : cu_(cu), asked_(asked) {}

  std::string run() {
    const std::uint64_t end = nanoseconds() + asked_.number(0) * 1'000'000;
    std::vector<std::uint64_t> before = busy();
    std::vector<std::uint64_t> after;
    std::uint32_t rounds = 0;
    std::uint32_t rounds_in_time = 0;
    for (std::uint32_t last = 0; last == 0 || rounds < last;) {
      if (const abi::Result result = launch_round(); result != abi::kSuccess) return said(result);
      ++rounds;
      if (rounds % asked_.number(1) == 0) wait();
      if (last != 0 || nanoseconds() < end) continue;
      after = busy();
      rounds_in_time = rounds;
      // Others are no further behind or ahead than what they launch before they wait.
      last = circle() == 0 ? rounds : last_round(rounds + 2 * asked_.number(1));
    }
    wait();
    leave_clock();
    std::string text = "0";
    for (std::size_t at = 0; at < after.size(); ++at) {
      text += " " + std::to_string(after[at] - before[at]);
    }
    return text + " " + std::to_string(rounds_in_time);
  }

 private:
  [[nodiscard]] unsigned int circle() const { return static_cast<unsigned int>(asked_.number(3)); }
  [[nodiscard]] std::uint32_t last_round(std::uint64_t proposed) const {
    auto* const ask = of_fake<std::uint32_t(std::uint32_t, std::uint32_t)>("fakeCudaLastRound");
    return ask(circle(), static_cast<std::uint32_t>(proposed));
  }
  template <typename Do>
  abi::Result for_each_device(Do act) const {
    for (std::size_t at = 6; at + 1 < asked_.numbers.size(); at += 2) {
      (void)cu_.cuCtxSetCurrent(asked_.handle<abi::Context>(at));
      const abi::Result result = act(static_cast<abi::Device>(asked_.number(at + 1)));
      if (result != abi::kSuccess) return result;
    }
    return abi::kSuccess;
  }
  abi::Result launch_round() const {
    const auto blocks = static_cast<unsigned int>(asked_.number(2));
    const abi::Result result = for_each_device([&](abi::Device) {
      return blocks == 0 ? abi::kSuccess : launch(cu_, Way::Kernel, blocks, nullptr);
    });
    if (result != abi::kSuccess || circle() == 0) return result;
    return for_each_device([&](abi::Device) {
      const auto size = static_cast<unsigned int>(asked_.number(4));
      const auto together = static_cast<unsigned int>(asked_.number(5));
      return cu_.cuLaunchKernel(
          nullptr, 0, circle(), size, together, 1, 1, 0, nullptr, nullptr, nullptr);
    });
  }
  void wait() const {
    (void)for_each_device([&](abi::Device) { return cu_.cuStreamSynchronize(nullptr); });
  }
  [[nodiscard]] std::vector<std::uint64_t> busy() const {
    auto* const ask = of_fake<std::uint64_t(abi::Device)>("fakeCudaBusy");
    std::vector<std::uint64_t> each;
    (void)for_each_device([&](abi::Device device) {
      each.push_back(ask(device));
      return abi::kSuccess;
    });
    return each;
  }

  const Functions& cu_;
  const Request& asked_;
};

/// "STREAM": whether the driver gets each argument of a launch.
std::string kernel_arguments(const Functions& cu, const Request& asked) {
  auto* const argument = of_fake<std::uint64_t(int)>("fakeCudaArgument");
  const auto pointer = [](std::uint64_t number) { return reinterpret_cast<void**>(number); };
  auto* const function = reinterpret_cast<abi::Function>(0x1111'1111'1111);
  const abi::Result result = cu.cuLaunchKernel(function,
                                               1,
                                               2,
                                               3,
                                               0x8000'0004,
                                               0x8000'0005,
                                               0x8000'0006,
                                               0x8000'0007,
                                               asked.handle<abi::Stream>(0),
                                               pointer(0x2222'2222'2222),
                                               pointer(0x3333'3333'3333));
  int place = 0;
  bool is_same = true;
  for (const std::uint64_t each : {std::uint64_t{0x1111'1111'1111},
                                   std::uint64_t{1},
                                   std::uint64_t{2},
                                   std::uint64_t{3},
                                   std::uint64_t{0x8000'0004},
                                   std::uint64_t{0x8000'0005},
                                   std::uint64_t{0x8000'0006},
                                   std::uint64_t{0x8000'0007},
                                   asked.number(0),
                                   std::uint64_t{0x2222'2222'2222},
                                   std::uint64_t{0x3333'3333'3333}}) {
    is_same = is_same && argument(place++) == each;
  }
  return said(result, is_same ? 1 : 0);
}

/// Whether the driver gets numbers with a fraction.
std::string float_arguments(const Functions& cu) {
  auto* const texture = reinterpret_cast<abi::TextureReference>(0x4444'4444'4444);
  const abi::Result result = cu.cuTexRefSetMipmapLevelClamp(texture, 0.25F, 1.5e30F);
  float least = 0;
  float most = 0;
  if (result == abi::kSuccess) (void)cu.cuTexRefGetMipmapLevelClamp(&least, &most, texture);
  return said(result, least == 0.25F && most == 1.5e30F ? 1 : 0);
}

}  // namespace

void add_launches(Commands& commands, const Functions& cu) {
  commands["stream"] = [&](const Request&) {
    return made<abi::Stream>([&](auto* out) { return cu.cuStreamCreate(out, 1); });
  };
  commands["launch"] = [&](const Request& asked) {
    return said(launch(cu,
                       static_cast<Way>(asked.number(2)),
                       static_cast<unsigned int>(asked.number(0)),
                       asked.handle<abi::Stream>(1)));
  };
  commands["kernel_arguments"] = [&](const Request& asked) { return kernel_arguments(cu, asked); };
  commands["float_arguments"] = [&](const Request&) { return float_arguments(cu); };
  commands["graph"] = [&](const Request& asked) { return graph(cu, asked); };
  commands["launch_graph"] = [&](const Request& asked) {
    return said(cu.cuGraphLaunch(asked.handle<abi::GraphExec>(0), asked.handle<abi::Stream>(1)));
  };
  commands["capture"] = [&](const Request& asked) {
    return said(cu.cuStreamBeginCapture(asked.handle<abi::Stream>(0), abi::kCaptureGlobal));
  };
  commands["captured"] = [&](const Request& asked) {
    return made<abi::Graph>(
        [&](auto* out) { return cu.cuStreamEndCapture(asked.handle<abi::Stream>(0), out); });
  };
  commands["sync"] = [&](const Request& asked) {
    return said(cu.cuStreamSynchronize(asked.handle<abi::Stream>(0)));
  };
  commands["sync_context"] = [&](const Request&) { return said(cu.cuCtxSynchronize()); };
  commands["tell"] = [](const Request& asked) {
    of_fake<void(abi::Device)>("fakeCudaTell")(static_cast<int>(asked.number(0)));
    return said(abi::kSuccess);
  };
  commands["time"] = [](const Request&) { return said(abi::kSuccess, nanoseconds()); };
  commands["busy"] = [](const Request& asked) {
    const auto device = static_cast<int>(asked.number(0));
    return said(abi::kSuccess, of_fake<std::uint64_t(abi::Device)>("fakeCudaBusy")(device));
  };
  commands["contested"] = [](const Request& asked) {
    const auto gpu = static_cast<int>(asked.number(0));
    return said(abi::kSuccess, of_fake<std::uint64_t(abi::Device)>("fakeCudaContested")(gpu));
  };
  commands["keep_busy"] = [&](const Request& asked) {
    return keep_busy(cu, asked, [&] {
      return launch(cu, Way::Kernel, static_cast<unsigned int>(asked.number(2)), nullptr);
    });
  };
  commands["train"] = [&](const Request& asked) { return Training(cu, asked).run(); };
  commands["keep_busy_by_graph"] = [&](const Request& asked) {
    return keep_busy(
        cu, asked, [&] { return cu.cuGraphLaunch(asked.handle<abi::GraphExec>(2), nullptr); });
  };
}

}  // namespace client
