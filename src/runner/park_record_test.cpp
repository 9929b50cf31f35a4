// SPDX-License-Identifier: Apache-2.0
#include "runner/park_record.h"

#include <gtest/gtest.h>

namespace gflow::runner {
namespace {

TEST(ParkRecord, HasWhatWasTakenOfEachGpu) {
  const ParkRecord record = parse_park_record(park_record_head(Memory::gib(9)) +
                                              "12 GPU-a 1024\n13 GPU-a 2048\n13 GPU-b 4096\n");
  EXPECT_EQ(record.most, Memory::gib(9));
  EXPECT_EQ(record.by_gpu,
            (std::map<std::string, Memory>{{"GPU-a", Memory{3072}}, {"GPU-b", Memory{4096}}}));
  EXPECT_EQ(record.taken(), Memory{7168});
  EXPECT_EQ(record.how, Parking::None) << "the file does not say it, its name does";
}

TEST(ParkRecord, OneThatWasBegunWithTwiceCountsOnce) {
  EXPECT_EQ(parse_park_record("12 GPU-a 1024\n12 GPU-a 2048\n").taken(), Memory{2048});
}

TEST(ParkRecord, HasWhereItIsToGoAndWhyItComesBack) {
  const ParkRecord::Move onto{.from = "GPU-a", .to = "GPU-b"};
  const ParkRecord::Move back{.from = "GPU-a", .to = "GPU-b", .is_back = true, .why = "no room"};
  const std::string begun = "12 GPU-a 1024\n13 GPU-a 2048\n" + park_record_line(onto);
  EXPECT_EQ(parse_park_record(begun).move, onto);
  EXPECT_EQ(parse_park_record(begun + park_record_line(back)).move, back);
  EXPECT_EQ(parse_park_record(begun + "back GPU-a GPU").move, onto) << "not written to its end";
  // What was parked again where it had come to is not where it was.
  EXPECT_EQ(parse_park_record(begun + "12 GPU-b 1024\n").by_gpu,
            (std::map<std::string, Memory>{{"GPU-a", Memory{2048}}, {"GPU-b", Memory{1024}}}));
}

/// Its writer may be killed, and its disk full.
TEST(ParkRecord, ALineThatWasNotWrittenToItsEndIsNone) {
  for (const char* text : {"", "most", "most 12", "12 GPU-a 1024", "most 5000000000000000000\n"}) {
    EXPECT_EQ(parse_park_record(text), ParkRecord{}) << text;
  }
  EXPECT_EQ(parse_park_record("most 12\n1 GPU-a 1024\n2 GPU-a 10").taken(), Memory{1024});
  EXPECT_EQ(parse_park_record("\n \n1 2 3 4\nx\nmost -1\n1 GPU-a many\n"), ParkRecord{});
}

}  // namespace
}  // namespace gflow::runner
