// SPDX-License-Identifier: Apache-2.0
#include "core/slurm_text.h"

#include <gtest/gtest.h>

namespace gflow::slurm {
namespace {

using namespace std::chrono_literals;

TEST(SlurmText, SpansAreReadAsSlurmWritesThem) {
  struct Case {
    const char* text;
    std::chrono::milliseconds span;
  };
  const Case cases[] = {{"00:00:00", 0s},
                        {"02:03", 2min + 3s},
                        {"26:03:04", 26h + 3min + 4s},
                        {"1-02:03:04", 26h + 3min + 4s},
                        {"365-00:00:00", 24h * 365},
                        {"00:05.250", 5250ms}};
  for (const Case& one : cases) EXPECT_EQ(read_span(one.text), one.span) << one.text;
  for (const char* none : {"",
                           "UNLIMITED",
                           "Partition_Limit",
                           "INVALID",
                           "5",
                           "-1:00:00",
                           "1-",
                           "1-2-03:04:05",
                           "99999999999:00:00",
                           "1:2:3:4",
                           "00:05.2",
                           "00: 5"}) {
    EXPECT_FALSE(read_span(none)) << none;
  }
}

TEST(SlurmText, TimesAreTheWholeOnes) {
  ASSERT_TRUE(read_time("2026-03-01T12:00:00"));
  EXPECT_EQ(rfc3339(*read_time("2026-03-01T12:00:00")), "2026-03-01T12:00:00.000Z");
  for (const char* none :
       {"", "Unknown", "None", "N/A", "2026-03-01 12:00", "2026-13-01T12:00:00"}) {
    EXPECT_FALSE(read_time(none)) << none;
  }
}

TEST(SlurmText, GpusAreCountedOnce) {
  struct Case {
    const char* tres;
    GpuCount gpus;
  };
  const Case cases[] = {{"", {"", 0}},
                        {"cpu=8,mem=32G,node=1", {"", 0}},
                        {"billing=8,cpu=8,gres/gpu=2,mem=32G", {"", 2}},
                        {"cpu=8,gres/gpu:v100=2,gres/gpu=2", {"v100", 2}},
                        {"cpu=8,gres/gpu:v100=2", {"v100", 2}},
                        {"gres/gpu:a100=1,gres/gpu:v100=2", {"", 3}},
                        {"gres/gpu=many", {"", 0}},
                        {"gres/gpumem=40G,gres/gpuutil=9", {"", 0}},
                        {"gres/gpu=99999999999999999999", {"", 0}}};
  for (const Case& one : cases) EXPECT_EQ(gpus_of_tres(one.tres), one.gpus) << one.tres;
  EXPECT_EQ(count_of_tres("cpu=1,gres/shard=5", "gres/shard"), 5);
}

}  // namespace
}  // namespace gflow::slurm
