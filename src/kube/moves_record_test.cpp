// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "kube/moves.h"

/// The ConfigMap by which somebody asks for moves.
namespace gflow::kube {
namespace {

TEST(Moves, AreWrittenAndReadAgain) {
  const MovesAsked asked{.id = "a",
                         .pods = {{"default", "w0", "w0"}, {"default", "w1", "w1"}},
                         .moves = {{"default", "a", "a"}}};
  nlohmann::json there = nlohmann::json::parse(patch_to_ask(asked, "7"));
  EXPECT_EQ(there["metadata"]["resourceVersion"], "7");
  there["data"].erase("answer");
  EXPECT_EQ(moves_record_of(there).asked, asked);
  EXPECT_TRUE(moves_record_of(there).is_open());
  const MovesAnswer answer{.id = "a", .state = MovesState::Making, .why = "", .priority = 101};
  there["data"]["answer"] = nlohmann::json::parse(patch_to_answer(answer, "8"))["data"]["answer"];
  EXPECT_EQ(moves_record_of(there).answer, answer);
  EXPECT_TRUE(moves_record_of(there).is_open());
  there["data"]["answer"] = R"({"id": "b", "state": "making"})";
  EXPECT_EQ(moves_record_of(there).answer, std::nullopt) << "it is that of another";
  for (const int forged : {-7, 300, 100'000, 2'147'483'647}) {
    there["data"]["answer"] =
        fmt::format(R"({{"id": "a", "state": "making", "priority": {}}})", forged);
    EXPECT_EQ(moves_record_of(there).answer->priority, forged < 0 ? 0 : 255);
  }
  MovesAsked many = asked;
  many.moves.resize(513, many.moves.front());
  for (std::size_t i = 0; i < many.moves.size(); ++i) many.moves[i].uid = fmt::format("{}", i);
  const auto read = [&there](const MovesAsked& wanted) {
    there["data"]["request"] = nlohmann::json::parse(patch_to_ask(wanted, "7"))["data"]["request"];
    return moves_record_of(there).asked;
  };
  EXPECT_EQ(read(many), std::nullopt);
  many.moves.pop_back();
  EXPECT_EQ(read(many), many);
  many.moves.back().uid = "0";
  EXPECT_EQ(read(many), std::nullopt) << "the same twice";
  EXPECT_EQ(read({"a", {{"default", "evil\nline", "u"}}, asked.moves}), std::nullopt);
  for (const char* broken : {"",
                             "[]",
                             "7",
                             R"({"id": "x"})",
                             R"({"id": "x", "pods": [{}], "moves": [{}]})",
                             R"({"id": "x", "pods": 3, "moves": "a"})"}) {
    there["data"]["request"] = broken;
    EXPECT_EQ(moves_record_of(there).asked, std::nullopt) << broken;
  }
  EXPECT_FALSE(moves_record_of({}).is_open());
}

}  // namespace
}  // namespace gflow::kube
