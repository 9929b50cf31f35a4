// SPDX-License-Identifier: Apache-2.0
#include "server/made_once.h"

#include <gtest/gtest.h>

#include "server/compression.h"
#include "server/entity_tag.h"

namespace gflow::server {
namespace {

TEST(MadeOnce, MakesEachDocumentWhenItIsFirstAskedFor) {
  MadeOnce made;
  int times = 0;
  const auto get = [&](const std::string& name) {
    return made.get(name, [&] { return name + std::to_string(++times); })->text;
  };
  EXPECT_EQ(get("/docs"), "/docs1");
  EXPECT_EQ(get("/api/v1/openapi.json"), "/api/v1/openapi.json2");
  EXPECT_EQ(get("/docs"), "/docs1");
  EXPECT_EQ(times, 2);
}

TEST(MadeOnce, IsCompressedAndDigestedWithIt) {
  MadeOnce made;
  const std::string text(10'000, 'x');
  const auto first = made.get("long", [&] { return text; });
  EXPECT_EQ(first->zipped, gzip(text));
  EXPECT_EQ(first->tag, tag_of_text(text));
  EXPECT_EQ(made.get("long", [] { return std::string(); }), first) << "the same, not a copy";
  EXPECT_EQ(made.get("short", [] { return std::string("x"); })->zipped, "") << "no shorter";
}

}  // namespace
}  // namespace gflow::server
