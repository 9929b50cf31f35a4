// SPDX-License-Identifier: Apache-2.0
#include "os/child.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace gflow::os {
namespace {

void wait_for(const Fd& fd) {
  pollfd watched{fd.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&watched, 1, 30'000), 1);
}

/// All it says until it closes its end.
std::string everything_from(const Child& child) {
  std::string all;
  std::array<char, 4096> buffer{};
  while (true) {
    wait_for(child.channel);
    const ssize_t got = ::recv(child.channel.get(), buffer.data(), buffer.size(), 0);
    if (got <= 0) return all;
    all.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

TEST(Child, TalksThroughOneSocketAndEndsWithIt) {
  auto child = start_child({{"/bin/cat"}, {}});
  ASSERT_TRUE(child) << child.error().message;
  EXPECT_FALSE(reap(*child));
  ASSERT_EQ(::send(child->channel.get(), "read\n", 5, MSG_NOSIGNAL), 5);
  wait_for(child->channel);
  std::array<char, 16> buffer{};
  EXPECT_EQ(::recv(child->channel.get(), buffer.data(), buffer.size(), 0), 5);
  child->channel.reset();
  wait_for(child->process);
  EXPECT_TRUE(reap(*child));
  EXPECT_TRUE(reap(*child)) << "a second time is no harm";
}

TEST(Child, EnvironmentIsOursWithTheExtra) {
  ASSERT_EQ(::setenv("GFLOW_CHILD_TEST", "ours", 1), 0);  // this program has one thread
  const auto child =
      start_child({{"/usr/bin/env"}, {"GFLOW_CHILD_TEST=theirs", "GFLOW_CHILD_NEW=1"}});
  ASSERT_TRUE(child);
  const std::string all = "\n" + everything_from(*child);
  EXPECT_TRUE(all.contains("\nGFLOW_CHILD_TEST=theirs\n")) << all;
  EXPECT_TRUE(all.contains("\nGFLOW_CHILD_NEW=1\n"));
  EXPECT_FALSE(all.contains("=ours\n"));
  EXPECT_TRUE(all.contains("\nPATH="));
  wait_for(child->process);
  EXPECT_TRUE(reap(*child));
}

TEST(Child, HasNothingOfOursOpenAndNoSignalBlocked) {
  sigset_t all{};
  sigset_t before{};
  (void)::sigfillset(&all);
  ASSERT_EQ(::sigprocmask(SIG_BLOCK, &all, &before), 0);
  const auto child = start_child(
      {{"/bin/sh", "-c", "ls /proc/self/fd | wc -l; grep SigBlk /proc/self/status"}, {}});
  ASSERT_EQ(::sigprocmask(SIG_SETMASK, &before, nullptr), 0);
  ASSERT_TRUE(child);
  // stdin, stdout, stderr and the directory that ls reads.
  EXPECT_EQ(everything_from(*child), "4\nSigBlk:\t0000000000000000\n");
  wait_for(child->process);
  EXPECT_TRUE(reap(*child));
}

TEST(Child, AProgramThatIsNotThere) {
  const auto child = start_child({{"/nonexistent/program"}, {}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Code::NotFound);
  EXPECT_TRUE(child.error().message.contains("run '/nonexistent/program'"))
      << child.error().message;
}

}  // namespace
}  // namespace gflow::os
