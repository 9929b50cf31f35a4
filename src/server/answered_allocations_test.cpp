// SPDX-License-Identifier: Apache-2.0
#include "server/answered_allocations.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "os/file.h"
#include "server/holder.h"

namespace gflow::server {
namespace {

class AnsweredTest : public testing::Test {
 protected:
  AnsweredTest() {
    std::string name = "/tmp/gflow-answered-XXXXXX";
    directory_ = ::mkdtemp(name.data());
  }
  ~AnsweredTest() override { (void)os::remove_tree(directory_); }
  [[nodiscard]] std::string path() const { return directory_ + "/answered"; }

 private:
  std::string directory_;
};

TEST_F(AnsweredTest, TellsTheNextDaemonWhatWasNoted) {
  {
    AnsweredAllocations first(path(), "boot");
    EXPECT_TRUE(first.may_be_known(JobId(1)));  // there was no file
    first.begin({JobId(1)});
    first.note(JobId(12));
  }
  AnsweredAllocations second(path(), "boot");
  EXPECT_TRUE(second.may_be_known(JobId(1)));
  EXPECT_TRUE(second.may_be_known(JobId(12)));
  EXPECT_FALSE(second.may_be_known(JobId(2)));
  second.begin({JobId(12)});
  EXPECT_FALSE(AnsweredAllocations(path(), "boot").may_be_known(JobId(1)));
}

TEST_F(AnsweredTest, SaysNothingAfterAReboot) {
  AnsweredAllocations(path(), "boot").begin({});
  EXPECT_FALSE(AnsweredAllocations(path(), "boot").may_be_known(JobId(1)));
  EXPECT_TRUE(AnsweredAllocations(path(), "another").may_be_known(JobId(1)));
}

TEST_F(AnsweredTest, SaysNothingOnceSomethingCouldNotBeNoted) {
  AnsweredAllocations of_a_full_disk(path(), "boot");
  std::ofstream(path()) << "boot\n";
  of_a_full_disk.note(JobId(1));  // no file was begun
  EXPECT_FALSE(os::exists(path()));
}

TEST(Holder, KeepsTheProcessesItIsFor) {
  const ProcessId owner{4711, 99};
  const ProcessId waiter{4712, 100};
  const auto kept = [](const HeldFor& held_for) {
    Payload payload;
    payload.argv = holder_command("/usr/libexec/gflow/gflow-shim", held_for);
    return waiting_processes(payload);
  };
  EXPECT_EQ(kept({}), std::vector<ProcessId>{});
  EXPECT_EQ(kept({owner, std::nullopt}), std::vector{owner});
  EXPECT_EQ(kept({std::nullopt, waiter}), std::vector{waiter});
  EXPECT_EQ(kept({owner, waiter}), (std::vector{owner, waiter}));
}

}  // namespace
}  // namespace gflow::server
