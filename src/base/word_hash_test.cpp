// SPDX-License-Identifier: Apache-2.0
#include "base/word_hash.h"

#include <gtest/gtest.h>

#include <set>

namespace gflow {
namespace {

TEST(WordHashTest, ATextThatDiffersInAnythingHasAnotherDigest) {
  const std::string text(100, 'a');
  std::set<std::string> digests = {digest_of(text)};
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = 'b';
    EXPECT_TRUE(digests.insert(digest_of(other)).second) << at;
  }
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_TRUE(digests.insert(digest_of(text.substr(0, size))).second) << size;
    EXPECT_TRUE(digests.insert(digest_of(text.substr(0, size) + '\0')).second) << size;
  }
  EXPECT_EQ(digest_of(text), digest_of(std::string(100, 'a')));
}

// It is kept in the database and compared by later versions.
TEST(WordHashTest, DigestsStayWhatTheyAre) {
  EXPECT_EQ(digest_of("").substr(0, 2), "0-");
  EXPECT_EQ(digest_of("gflow").substr(0, 2), "5-");
}

}  // namespace
}  // namespace gflow
