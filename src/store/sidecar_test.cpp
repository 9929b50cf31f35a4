// SPDX-License-Identifier: Apache-2.0
#include <cstdint>

#include "store/sidecar.h"

#include <gtest/gtest.h>

#include "os/file.h"
#include "store/samples.h"

namespace gflow::store {
namespace {

TEST(SidecarTest, RemembersWhichIdsMayHaveBeenGivenOut) {
  struct Case {
    const char* what;
    bool ends;
    const char* next_boot;
    std::uint64_t next_id;
  };
  // Ids up to 1499 were given out, in blocks of 1000.
  const Case cases[] = {
      {"ended in order", true, "boot-1", 1500},
      {"ended in order, then rebooted", true, "boot-2", 1500},
      {"killed", false, "boot-1", 1500},
      {"power lost: the last line may not be on disk", false, "boot-2", 2101},
  };
  for (const Case& c : cases) {
    const samples::Directory directory;
    {
      auto sidecar = Sidecar::open(directory.file("ids"), "boot-1").value();
      EXPECT_EQ(sidecar.next_id(), JobId(1)) << c.what;
      ASSERT_TRUE(sidecar.begin(JobId(1), 7));
      for (const std::uint64_t id : {2U, 100U, 1001U, 1101U, 1500U}) {
        ASSERT_TRUE(sidecar.give_out(JobId(id)));
      }
      ASSERT_TRUE(sidecar.committed(8));
      if (c.ends) {
        ASSERT_TRUE(sidecar.end("1000-abcd"));
      }
    }
    const auto sidecar = Sidecar::open(directory.file("ids"), c.next_boot).value();
    EXPECT_EQ(sidecar.next_id(), JobId(c.next_id)) << c.what;
    EXPECT_EQ(sidecar.digest(), c.ends ? "1000-abcd" : "") << c.what;
    EXPECT_EQ(sidecar.commits(), 8U) << c.what;
    EXPECT_TRUE(sidecar.is_known()) << c.what;
  }
}

TEST(SidecarTest, ReadsWhatTheFirstVersionWrote) {
  const samples::Directory directory;
  const std::string line = "gflow-ids-1 1500 2100 closed boot-1";
  const std::string padding(255 - line.size(), ' ');
  ASSERT_TRUE(os::write_file(directory.file("ids"), line + padding + "\n"));
  const auto sidecar = Sidecar::open(directory.file("ids"), "boot-1").value();
  EXPECT_EQ(sidecar.next_id(), JobId(1500));
  EXPECT_EQ(sidecar.digest(), "");
  EXPECT_EQ(sidecar.commits(), 0U);
  EXPECT_TRUE(sidecar.is_known());
}

TEST(SidecarTest, AContentItCannotReadCountsAsNone) {
  const samples::Directory directory;
  for (const std::string& content :
       {std::string(), std::string(256, '\0'), std::string(300, 'x')}) {
    ASSERT_TRUE(os::write_file(directory.file("ids"), content));
    const auto sidecar = Sidecar::open(directory.file("ids"), "boot").value();
    EXPECT_EQ(sidecar.next_id(), JobId(1));
    EXPECT_EQ(sidecar.digest(), "");
    EXPECT_FALSE(sidecar.is_known());
  }
}

}  // namespace
}  // namespace gflow::store
