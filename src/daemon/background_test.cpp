// SPDX-License-Identifier: Apache-2.0
#include "daemon/background.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace gflow::daemon {
namespace {

TEST(TellStarter, FailsOnlyWhereSomebodyWaitsInVain) {
  (void)::signal(SIGPIPE, SIG_IGN);  // as the daemon does
  EXPECT_TRUE(tell_starter(-1, nullptr));
  const auto full = tell_starter(::open("/dev/full", O_WRONLY | O_CLOEXEC), nullptr);
  ASSERT_FALSE(full);
  EXPECT_NE(full.error().message.find("No space left"), std::string::npos) << full.error().message;

  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ::close(ends[0]);
  EXPECT_TRUE(tell_starter(ends[1], nullptr)) << "it has gone, and need not know";

  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  EXPECT_TRUE(tell_starter(ends[1], nullptr));
  std::array<char, 16> said{};
  EXPECT_EQ(::read(ends[0], said.data(), said.size()), 6);
  EXPECT_STREQ(said.data(), "ready\n");
  ::close(ends[0]);
}

}  // namespace
}  // namespace gflow::daemon
