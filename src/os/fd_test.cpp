// SPDX-License-Identifier: Apache-2.0
#include "os/fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstddef>

namespace gflow::os {
namespace {

/// Wherever they are free: the last number is taken, which few daemons come to.
TEST(Descriptors, AreThereAsLongAsTheyCanBeHad) {
  constexpr int kLimit = 128;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const Fd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Fd last(::fcntl(first.get(), F_DUPFD_CLOEXEC, kLimit - 1));
  ASSERT_EQ(last.get(), kLimit - 1);
  std::size_t free = 0;
  for (int fd = 0; fd < kLimit; ++fd) {
    if (::fcntl(fd, F_GETFD) == -1) ++free;
  }
  const rlimit few{kLimit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const auto too_many = check_descriptors(free + 1);
  const auto all = check_descriptors(free);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(all);
  ASSERT_FALSE(too_many);
  EXPECT_EQ(too_many.error().number, EMFILE);
}

}  // namespace
}  // namespace gflow::os
