// SPDX-License-Identifier: Apache-2.0
#include "kube/workers.h"

#include <gtest/gtest.h>

#include <latch>

namespace gflow::kube {
namespace {

/// The next one due is taken by one thread while others wait for it.
TEST(Workers, DoWhatIsDueLaterOnceWhoeverWaitsForIt) {
  const Access access{.tls = false};
  Credentials credentials(access);
  Workers workers(access, credentials, 4);
  for (int round = 0; round < 50; ++round) {
    constexpr int kTasks = 20;
    std::latch left(kTasks);  // one that is done twice makes it less than nothing
    for (int i = 0; i < kTasks; ++i) {
      workers.urgent_after(std::chrono::milliseconds(i % 4),
                           [&left](Api& /*api*/) { left.count_down(); });
    }
    left.wait();
  }
}

}  // namespace
}  // namespace gflow::kube
