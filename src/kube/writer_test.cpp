// SPDX-License-Identifier: Apache-2.0
#include "kube/writer.h"

#include <gtest/gtest.h>

namespace gflow::kube {
namespace {

using std::chrono::seconds;

TEST(Teller, TellsAtOnceWhatIsNewAndLaterWhatChangedOrDidNotArrive) {
  Teller teller;
  Pod pod;
  pod.uid = "u";
  const MonoTime begin{seconds(100)};
  const auto told = [&](const std::string& why, int after) {
    return teller.due({{&pod, why}}, begin + seconds(after)).size() == 1;
  };
  EXPECT_TRUE(told("no room", 0));
  EXPECT_FALSE(told("no room", 1)) << "it is on its way";
  EXPECT_TRUE(teller.has_more());
  EXPECT_TRUE(told("no room", 5)) << "it did not arrive";
  pod.told = "no room";
  EXPECT_FALSE(told("no room", 6));
  EXPECT_FALSE(teller.has_more());
  EXPECT_FALSE(told("less room", 7));
  EXPECT_TRUE(told("less room", 10));
  pod.told = "less room";
  EXPECT_TRUE(teller.due({}, begin).empty());
  EXPECT_FALSE(told("less room", 11)) << "one that begins anew sees what was told";
}

}  // namespace
}  // namespace gflow::kube
