// SPDX-License-Identifier: Apache-2.0
#include "server/made_once.h"

#include <gtest/gtest.h>

namespace gflow::server {
namespace {

TEST(MadeOnce, MakesEachDocumentWhenItIsFirstAskedFor) {
  MadeOnce made;
  int times = 0;
  const auto get = [&](const std::string& name) {
    return made.get(name, [&] { return name + std::to_string(++times); });
  };
  EXPECT_EQ(get("/docs"), "/docs1");
  EXPECT_EQ(get("/api/v1/openapi.json"), "/api/v1/openapi.json2");
  EXPECT_EQ(get("/docs"), "/docs1");
  EXPECT_EQ(times, 2);
}

}  // namespace
}  // namespace gflow::server
