// SPDX-License-Identifier: Apache-2.0
// Reading requests for GPUs: the grammar alone, in
// processor time of one thread.
#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "core/gpu_request.h"

namespace {

constexpr int kTimes = 300'000;
constexpr int kRuns = 5;

double best_microseconds(std::string_view text, const gflow::GpuResources& resources) {
  double best = 0;
  for (int run = 0; run < kRuns; ++run) {
    const std::clock_t start = std::clock();
    int read = 0;
    for (int i = 0; i < kTimes; ++i) {
      if (gflow::read_gpu_request(text, resources)) ++read;
    }
    const double each = 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / kTimes;
    if (read != 0 && read != kTimes) std::exit(1);
    if (run == 0 || each < best) best = each;
  }
  return best;
}

}  // namespace

int main() {
  const gflow::GpuResources resources;
  fmt::print("{:20} {:>8} {:>12}\n", "request", "us", "per s");
  for (const std::string_view text :
       {"2", "0.5", "8G,0.5", "2(V100)", "1(nvidia,V100)", "2(A100|H100),40G", "invalid"}) {
    const double each = best_microseconds(text, resources);
    fmt::print("{:20} {:8.3f} {:12.0f}\n", text, each, 1e6 / each);
  }
}
