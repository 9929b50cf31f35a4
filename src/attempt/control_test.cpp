// SPDX-License-Identifier: Apache-2.0
#include "attempt/control.h"

#include <gtest/gtest.h>

namespace gflow::attempt {
namespace {

using std::chrono::seconds;

TEST(Control, SignalAndValue) {
  const struct {
    const char* name;
    ControlSignal signal;
    std::optional<Control> control;
  } kTable[] = {
      {"cancel with TERM", {40, (4 << 8) | 15}, StopJob{15, Ending::Cancelled}},
      {"time limit with USR1", {40, (3 << 8) | 10}, StopJob{10, Ending::TimeLimit}},
      {"limit of a minute", {41, 60}, SetLimit{seconds(60)}},
      {"no limit", {41, 0}, SetLimit{}},
      {"preemption with USR1", {40, (11 << 8) | 10}, StopJob{10, Ending::Preempted}},
      {"stand still", {42, 1}, SuspendJob{}},
      {"go on", {42, 0}, ResumeJob{}},
      {"a message", {43, 10}, SendSignal{10}},
      {"neither", {42, 2}, std::nullopt},
      {"a reason between", {40, (10 << 8) | 15}, std::nullopt},
      {"signal 0", {40, 4 << 8}, std::nullopt},
      {"signal 65", {40, (4 << 8) | 65}, std::nullopt},
      {"no such reason", {40, (77 << 8) | 15}, std::nullopt},
      {"reason 0", {40, 15}, std::nullopt},
      {"negative limit", {41, -1}, std::nullopt},
      {"message 0", {43, 0}, std::nullopt},
      {"message 65", {43, 65}, std::nullopt},
      {"another signal", {15, 60}, std::nullopt},
  };
  for (const auto& row : kTable) {
    EXPECT_EQ(decode_control(row.signal), row.control) << row.name;
    if (row.control) {
      EXPECT_EQ(encode_control(*row.control), row.signal) << row.name;
    }
  }
}

TEST(Control, LimitsAreBroughtIntoRange) {
  EXPECT_EQ(encode_control(SetLimit{seconds(0)}), (ControlSignal{41, 1}));
  EXPECT_EQ(encode_control(SetLimit{seconds(-5)}), (ControlSignal{41, 1}));
  EXPECT_EQ(encode_control(SetLimit{seconds(1LL << 40)}), (ControlSignal{41, 2147483647}));
}

}  // namespace
}  // namespace gflow::attempt
