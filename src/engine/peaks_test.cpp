// SPDX-License-Identifier: Apache-2.0
#include "engine/peaks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace gflow::engine {
namespace {

TEST(Peaks, KnowACommandByItsProgram) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"python train.py --lr 0.1", "python train.py"},
      {"python -m pkg.train", "python"},
      {"./run", "./run"},
      {"  a   b  c", "a b"},
      {"", ""}};
  for (const auto& [command, program] : cases) EXPECT_EQ(program_of(command), program) << command;
}

TEST(Peaks, RememberTheMostAnyRunUsed) {
  Peaks peaks;
  peaks.add(1000, "python train.py --lr 0.1", Memory::gib(9));
  peaks.add(1000, "python train.py --lr 0.2", Memory::gib(11));
  peaks.add(1000, "python train.py", Memory::gib(7));
  peaks.add(1000, "python train.py", Memory{});
  EXPECT_EQ(peaks.find(1000, "python train.py --seed 3"), (Peak{Memory::gib(11), 3}));
  EXPECT_EQ(peaks.find(1001, "python train.py"), std::nullopt);
  EXPECT_EQ(peaks.find(1000, "python eval.py"), std::nullopt);
}

TEST(Peaks, ForgetTheOneUsedLongestAgo) {
  Peaks peaks;
  for (std::size_t i = 0; i < Peaks::kMax; ++i) {
    peaks.add(1, "run" + std::to_string(i), Memory::gib(1));
  }
  peaks.add(1, "run0", Memory::gib(2));
  peaks.add(1, "another", Memory::gib(3));
  EXPECT_EQ(peaks.find(1, "run0"), (Peak{Memory::gib(2), 2}));
  EXPECT_EQ(peaks.find(1, "run1"), std::nullopt);
  EXPECT_EQ(peaks.find(1, "another"), (Peak{Memory::gib(3), 1}));
}

}  // namespace
}  // namespace gflow::engine
