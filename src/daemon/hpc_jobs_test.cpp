// SPDX-License-Identifier: Apache-2.0
#include "daemon/hpc_jobs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "os/file.h"

namespace gflow::daemon {
namespace {

using Files = std::map<std::string, std::string>;

class HpcJobsTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(os::remove_tree(directory_)); }
  void TearDown() override { (void)os::remove_tree(directory_); }

  [[nodiscard]] Files files() const {
    Files all;
    const auto names = os::names_in(directory_).value();
    for (const std::string& name : names) {
      all[name] = os::read_file(directory_ + "/" + name).value();
    }
    return all;
  }

  std::string directory_ = testing::TempDir() + "/gflow-hpc-jobs";
};

TEST_F(HpcJobsTest, AFileForEachGpuWithJobs) {
  HpcJobs jobs;
  jobs.show({{0, {JobId(1)}}});  // to nowhere
  jobs.set_directory(directory_);
  jobs.show({{0, {JobId(1)}}, {1, {}}, {2, {JobId(3), JobId(12)}}});
  jobs.drain();
  EXPECT_EQ(files(), (Files{{"0", "1\n"}, {"2", "3\n12\n"}}));
  struct stat facts{};
  ASSERT_EQ(::stat((directory_ + "/0").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777, 0644U) << "the exporter may be another user's";
  jobs.show({{2, {JobId(12)}}});
  jobs.drain();
  EXPECT_EQ(files(), (Files{{"2", "12\n"}}));
  EXPECT_EQ(jobs.trouble(), "");
  jobs.set_directory("");
  jobs.drain();
  EXPECT_EQ(files(), Files());
}

TEST_F(HpcJobsTest, WhatAnEarlierDaemonLeftIsRemovedAndNothingElse) {
  ASSERT_TRUE(os::make_directories(directory_ + "/7"));
  for (const char* name : {"0", "1", ".1.part", "README"}) {
    ASSERT_TRUE(os::write_file(directory_ + "/" + name, "9\n"));
  }
  HpcJobs jobs;
  jobs.set_directory(directory_);
  jobs.show({{1, {JobId(2)}}});
  jobs.drain();
  EXPECT_TRUE(os::is_directory(directory_ + "/7"));
  ASSERT_TRUE(os::remove_tree(directory_ + "/7"));
  EXPECT_EQ(files(), (Files{{"1", "2\n"}, {"README", "9\n"}}));
}

TEST_F(HpcJobsTest, SaysWhatItCannotWrite) {
  HpcJobs jobs;
  jobs.set_directory("/proc/nowhere");
  jobs.drain();
  EXPECT_NE(jobs.trouble(), "");
}

}  // namespace
}  // namespace gflow::daemon
