// SPDX-License-Identifier: Apache-2.0
#include "base/device_filter.h"

#include <gtest/gtest.h>

namespace gflow {
namespace {

TEST(DeviceFilter, NodesAreReadAsSysfsWritesThem) {
  EXPECT_EQ(parse_device_nodes("195:3"), DeviceNodes::one(195, 3));
  EXPECT_EQ(parse_device_nodes("195:0-247"), (DeviceNodes{195, 0, 247}));
  EXPECT_EQ(parse_device_nodes("4095:1048575"), DeviceNodes::one(4095, 1048575));
  for (const char* text : {"",
                           "195",
                           ":3",
                           "195:",
                           "195:3-",
                           "195:-3",
                           "195:5-3",
                           "195:3-5-7",
                           "195:3:5",
                           "c 195:3",
                           " 195:3",
                           "4096:0",
                           "1:1048576",
                           "1:-1",
                           "99999999999:1"}) {
    EXPECT_FALSE(parse_device_nodes(text)) << text;
  }
}

TEST(DeviceFilter, NodesAreWrittenAsTheyAreRead) {
  for (const char* text : {"195:3", "195:0-247", "0:0"}) {
    EXPECT_EQ(device_nodes_text(parse_device_nodes(text).value()), text);
  }
}

std::string text_of(const DeviceFilter& filter) {
  std::string text;
  for (const DeviceNodes& one : filter.denied) text += device_nodes_text(one) + " ";
  return text;
}

TEST(DeviceFilter, WhatIsAllowedIsNotDenied) {
  const DeviceFilter filter = deny({{195, 0, 247}, {226, 128, 129}},
                                   {DeviceNodes::one(195, 2), DeviceNodes::one(226, 129)});
  EXPECT_EQ(text_of(filter), "195:0-1 195:3-247 226:128 ");
  const struct {
    std::uint32_t major;
    std::uint32_t minor;
    bool is_denied;
  } kTable[] = {{195, 0, true},
                {195, 2, false},
                {195, 247, true},
                {195, 255, false},
                {226, 128, true},
                {226, 129, false},
                {226, 127, false},
                {1, 3, false}};
  for (const auto& row : kTable) {
    EXPECT_EQ(filter.denies(row.major, row.minor), row.is_denied) << row.major << ":" << row.minor;
  }
  EXPECT_FALSE(DeviceFilter{}.denies(195, 0));
}

TEST(DeviceFilter, HasAsFewRangesAsItCan) {
  EXPECT_EQ(text_of(deny({{195, 5, 9}, {1, 3, 3}, {195, 0, 3}, {195, 4, 4}, {195, 2, 7}}, {})),
            "1:3 195:0-9 ");
  EXPECT_EQ(text_of(deny({{195, 0, 9}}, {{195, 0, 3}, {195, 9, 12}, {194, 5, 5}, {195, 6, 6}})),
            "195:4-5 195:7-8 ");
  EXPECT_EQ(text_of(deny({{195, 0, 9}}, {{195, 0, 20}})), "");
  EXPECT_EQ(text_of(deny({}, {{195, 0, 20}})), "");
  EXPECT_EQ(text_of(deny({{195, 1, 1}, {195, 3, 3}}, {})), "195:1 195:3 ");
}

}  // namespace
}  // namespace gflow
