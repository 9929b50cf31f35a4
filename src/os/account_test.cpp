// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "os/user.h"

namespace gflow::os {
namespace {

TEST(Accounts, AreReadFromAFileWhateverElseIsInIt) {
  const std::string passwd =
      "root:x:0:0:root:/root:/bin/bash\n"
      "long:x:1:1:" +
      std::string(100'000, 'a') +
      ":/home/long:/bin/sh\n"
      "+::::::\n"
      "\n"
      "short:x:2\n"
      "no gid:x:3:many::/home/nobody:\n"
      "behind:x:3:30::/home/behind:";
  const auto behind = account_in(passwd, 3);
  ASSERT_TRUE(behind);
  EXPECT_EQ(behind->name, "behind");
  EXPECT_EQ(behind->gid, 30U);
  EXPECT_EQ(behind->home, "/home/behind");
  EXPECT_EQ(account_in(passwd, 1).value().home, "/home/long");
  for (const std::uint32_t none : {2U, 4U}) EXPECT_FALSE(account_in(passwd, none)) << none;
}

TEST(Accounts, OneThatIsNotFoundHasANameAllTheSame) {
  constexpr std::uint32_t kNone = 4'000'000;
  EXPECT_FALSE(find_account(kNone));
  EXPECT_EQ(account_of(kNone).name, "uid-4000000");
  EXPECT_EQ(account_of(0).name, "root");
}

}  // namespace
}  // namespace gflow::os
